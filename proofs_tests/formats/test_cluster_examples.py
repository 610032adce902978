"""The cluster examples parse, and their numbers and names agree with each other."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_slurm_script_is_a_shell_script() -> None:
    script = EXAMPLES / "cluster" / "slurm.sbatch"
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    done = subprocess.run([bash, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_slurm_script_gives_torchrun_its_nodes_and_arguments(tmp_path: Path) -> None:
    """Run with a ``scontrol``, an ``srun`` and a ``torchrun`` that print what they are given."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    for name, body in (
        ("scontrol", "printf 'first\\nsecond\\n'"),
        ("srun", 'shift; SLURM_NODEID=1 exec "$@"'),  # without its one option, on node 1
        ("torchrun", "printf '%s\\n' \"$@\""),
    ):
        (tmp_path / name).write_text(f"#!{bash}\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [bash, str(EXAMPLES / "cluster" / "slurm.sbatch"), "1f1b", "p=8", "m=16"],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "SLURM_JOB_NODELIST": "node[1-2]",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURM_JOB_ID": "41234",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [
        *("--nnodes", "2", "--node-rank", "1", "--nproc-per-node", "4"),
        *("--master-addr", "first", "--master-port", "21234"),  # 20000 + 41234 mod 20000
        *("-m", "bubbleproof.reference_exec", "1f1b", "p=8", "m=16", "--backend", "nccl"),
    ]


def test_the_kubernetes_job_and_its_service_fit() -> None:
    yaml = pytest.importorskip("yaml")
    text = (EXAMPLES / "cluster" / "kubernetes.yaml").read_text(encoding="utf-8")
    service, job = yaml.safe_load_all(text)
    assert (service["kind"], job["kind"]) == ("Service", "Job")
    name, domain = job["metadata"]["name"], service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}
    spec = job["spec"]
    pod = spec["template"]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert pod["subdomain"] == domain
    (container,) = pod["containers"]
    options = dict(
        word.removeprefix("--").split("=") for word in container["command"] if "=" in word
    )
    assert int(options["nnodes"]) == spec["completions"] == spec["parallelism"]
    assert int(options["nproc-per-node"]) == container["resources"]["limits"]["nvidia.com/gpu"]
    assert options["master-addr"] == f"{name}-0.{domain}"
    assert int(options["master-port"]) == service["spec"]["ports"][0]["port"]
    variables = {entry["name"] for entry in container["env"]}
    assert options["node-rank"] == "$(JOB_COMPLETION_INDEX)"
    assert "JOB_COMPLETION_INDEX" in variables
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
