"""A second judge of rule 6: a Promela model of programs and semantics, searched by SPIN.

The model is one text for all programs and semantics: a process for each rank, which computes and
posts, for each channel (ordered pair of ranks), which passes its messages in order, and one for
each rank that starts what it launched. What each of them waits for is read when the search begins,
from the numbers that ``numbers_of`` writes. SPIN searches every interleaving; a state in which
nobody can go on and somebody has not ended is an error. Nothing is shared with
``verify.communication.deadlock``: which streams there are is said here a second time, messages
follow from the stages' neighbours (``token_simulator.Wiring``), and there is no graph.

An operation is a row of a rank's program. Its numbers: is it a SEND (0), a RECV (1) or else (2);
its channel and its number there; the operations that must have *ended* before it starts (of a
computation: runs), and the (rank, position) that must have been reached, each list behind its
length; and the partner of a first use of a communicator, or -1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bubbleproof.theory.model.actions import Action, Kind
from proofs_tests.verify.token_simulator import WAITS, Wiring

UNBUFFERED, UNBOUNDED = 0, -1
BLOCKING = ("rendezvous", "one-queue")
HELD = {"buffered": UNBOUNDED, "bounded": 1}
ENDS = {Kind.SEND_F: "F", Kind.RECV_F: "F", Kind.SEND_B: "B", Kind.RECV_B: "B"}

MODEL = r"""
c_decl {
\#include <stdio.h>
\#include <stdlib.h>
\#define MOST 20000
\#define CAN_GO can_go(((P0 *)_this)->r)
\#define CAN_PASS can_pass(((P1 *)_this)->c)
\#define ALL_DONE all_done()
\#define IS_SAME is_same(((P1 *)_this)->c)
\#define CAN_LEAVE can_leave(((P2 *)_this)->c)
\#define CAN_LAUNCH can_launch(((P3 *)_this)->r)
static int np, nc, held, blocking, launches, first[9], kind[MOST], channel[MOST], place[MOST];
static int home[MOST], nended[MOST], nreach[MOST], partner[MOST], *ended_[MOST], *reach_[MOST];
static int size[64], *sends[64], *recvs[64], nlaunch[8], *launch[8], numl[MOST], token[MOST];
static int one(FILE *f) { int x; if (fscanf(f, "%d", &x) != 1) exit(99); return x; }
static int *many(FILE *f, int n)
{ int i, *a = malloc((n + 1) * sizeof(int)); for (i = 0; i < n; i++) a[i] = one(f); return a; }
static void load(void)
{ int r, i; FILE *f = fopen(getenv("PROGRAM_NUMBERS"), "r");
  if (!f) exit(98);
  np = one(f); nc = one(f); held = one(f); blocking = one(f); launches = one(f);
  for (r = 0; r <= np; r++) first[r] = one(f);
  for (r = 0; r < np; r++) for (i = first[r]; i < first[r + 1]; i++) {
    home[i] = r; kind[i] = one(f); channel[i] = one(f); place[i] = one(f); token[i] = one(f);
    nended[i] = one(f); ended_[i] = many(f, nended[i]);
    nreach[i] = one(f); reach_[i] = many(f, 2 * nreach[i]); partner[i] = one(f); numl[i] = one(f); }
  for (i = 0; i < nc; i++) { size[i] = one(f); sends[i] = many(f, size[i]);
    recvs[i] = many(f, size[i]); }
  for (r = 0; r < np; r++) { nlaunch[r] = one(f); launch[r] = many(f, nlaunch[r]); }
  fclose(f); }
}
short pc[8]; short out[40]; short passed[40]; short started[8]; bool made[64];
byte ranks; byte channels; bool starts; bool alone;
c_code {
static int has_ended(int op)
{ return kind[op] == 2 ? now.pc[home[op]] > op - first[home[op]]
    : (kind[op] ? now.passed : now.out)[channel[op]] > place[op]; }
static int is_free(int op)
{ int i;
  for (i = 0; i < nended[op]; i++) if (!has_ended(ended_[op][i])) return 0;
  for (i = 0; i < nreach[op]; i++) if (now.pc[reach_[op][2*i]] < reach_[op][2*i+1]) return 0;
  return 1; }
static int can_start(int op)
{ int r = home[op], at = op - first[r];
  return (blocking ? now.pc[r] >= at : now.pc[r] > at) && is_free(op); }
static int is_started(int op)
{ return launches ? now.started[home[op]] > numl[op] : can_start(op); }
static int can_go(int r)
{ int op = first[r] + now.pc[r], q;
  if (op == first[r + 1]) return 0;
  if (kind[op] == 2) return is_free(op);
  if (blocking) return has_ended(op);
  q = partner[op];
  return q < 0 || now.made[home[op] * 8 + home[q]]
    || now.pc[home[q]] == q - first[home[q]]; }
static void go(int r)
{ int op = first[r] + now.pc[r], q = partner[op];
  if (kind[op] != 2 && q >= 0) {
    now.made[home[op] * 8 + home[q]] = 1; now.made[home[q] * 8 + home[op]] = 1; }
  now.pc[r]++; }
static int can_pass(int c)
{ int s, t, k = now.passed[c];
  if (k == size[c]) return 0;
  s = sends[c][k]; t = recvs[c][k];
  return is_started(t) && (held ? now.out[c] > k : is_started(s)); }
static int is_same(int c)
{ int k = now.passed[c]; return token[sends[c][k]] == token[recvs[c][k]]; }
static int can_leave(int c)
{ int k = now.out[c];
  if (k == size[c] || !is_started(sends[c][k])) return 0;
  return held < 0 || k - now.passed[c] < held; }
static int all_done(void)
{ int i;
  for (i = 0; i < np; i++) if (now.pc[i] < first[i + 1] - first[i]) return 0;
  for (i = 0; i < nc; i++) if (now.passed[i] < size[i]) return 0;
  return 1; }
static int can_launch(int r)
{ int k = now.started[r]; return k < nlaunch[r] && can_start(launch[r][k]); }
}
proctype rank(byte r) {
end: do :: atomic { c_expr { CAN_GO } -> c_code { go(Prank->r); } } od }
proctype wire(byte c) {
end: do :: atomic { c_expr { CAN_PASS } -> assert(c_expr { IS_SAME });
  c_code { now.passed[Pwire->c]++; if (!held) now.out[Pwire->c]++; } } od }
proctype leave(byte c) {
end: do :: atomic { c_expr { CAN_LEAVE } -> c_code { now.out[Pleave->c]++; } } od }
proctype launcher(byte r) {
end: do :: atomic { c_expr { CAN_LAUNCH } -> c_code { now.started[Plauncher->r]++; } } od }
init {
  byte i;
  atomic {
    c_code { load(); now.ranks = np; now.channels = nc; now.starts = launches;
      now.alone = held != 0; };
    for (i : 1 .. ranks) { run rank(i - 1); if :: starts -> run launcher(i - 1) :: else fi }
    if :: channels > 0 ->
      for (i : 1 .. channels) { run wire(i - 1); if :: alone -> run leave(i - 1) :: else fi }
    :: else fi
  }
  c_expr { ALL_DONE }
}
"""


@dataclass(slots=True, kw_only=True)
class _Operation:
    kind: int
    channel: int = -1
    number: int = -1
    token: int = -1
    ended: list[int] = field(default_factory=list)
    reach: list[tuple[int, int]] = field(default_factory=list)
    partner: int = -1
    launch: int = -1


class _Numbers:
    """The operations of one program under one semantics."""

    def __init__(self, wiring: Wiring, orders: list[list[Action]], semantics: str) -> None:
        self.wiring, self.orders, self.semantics = wiring, orders, semantics
        self.first = [sum(map(len, orders[:r])) for r in range(len(orders) + 1)]
        self.ops = [_Operation(kind=2) for order in orders for _ in order]
        self.actions = [action for order in orders for action in order]
        self.home = [r for r, order in enumerate(orders) for _ in order]
        self.peer: dict[int, int] = {}
        self.flow: dict[int, str] = {}
        self.channels: dict[object, tuple[list[int], list[int]]] = {}
        self._ends()
        self.batches = self._batches()
        self._computations()
        self._streams()
        if semantics == "lazy-pairs":
            self._first_uses()

    def _ends(self) -> None:
        tokens: dict[object, int] = {}
        for i, action in enumerate(self.actions):
            if action.kind not in ENDS:
                continue
            r = self.home[i]
            way, token, peer = self.wiring.post(r, action)
            self.peer[i], self.flow[i] = peer, ENDS[action.kind]
            pair = (r, peer) if way == "send" else (peer, r)
            key = (*pair, self.flow[i]) if self.semantics == "per-direction" else pair
            own = self.channels.setdefault(key, ([], []))[way == "recv"]
            op = self.ops[i]
            op.kind, op.number = int(way == "recv"), len(own)
            op.channel = list(self.channels).index(key)
            op.token = tokens.setdefault(token, len(tokens))
            own.append(i)

    def _batches(self) -> dict[int, list[int]]:
        """The batch of each end: alone, unless batches are what is started."""
        found: dict[int, list[int]] = {}
        for i in self.peer:
            is_grouped = "batch" in self.semantics and i - 1 in found
            is_next = is_grouped and self.home[i - 1] == self.home[i]
            found[i] = found[i - 1] if is_next else []
            found[i].append(i)
        return found

    def _computations(self) -> None:
        received = {op.token: i for i, op in enumerate(self.ops) if op.kind == 1}
        sent = {op.token: i for i, op in enumerate(self.ops) if op.kind == 0}
        tokens = {}
        for i in self.peer:
            _, token, _ = self.wiring.post(self.home[i], self.actions[i])
            tokens[token] = self.ops[i].token
        at = {(self.home[i], action): i for i, action in enumerate(self.actions)}
        for i, action in enumerate(self.actions):
            op = self.ops[i]
            if action.kind in WAITS:
                token = (WAITS[action.kind], action.stage, action.microbatch, action.slice)
                op.ended += self.batches[sent[tokens[token]]]
            elif i not in self.peer and action in self.wiring.local:
                for token in self.wiring.inputs[action]:
                    op.ended += self.batches[received[tokens[token]]]
                op.ended += [at[self.home[i], each] for each in self.wiring.local[action]]

    def _stream(self, i: int) -> object:
        r, peer = self.home[i], self.peer[i]
        source = r if self.ops[i].kind == 0 else peer
        by_name: dict[str, object] = {
            "buffered": (source, r + peer - source),
            "rendezvous": (source, r + peer - source),
            "directed-edge": (source, r + peer - source),
            "per-direction": self.flow[i],
            "rank-parity": source % 2,
            "pair-stream": peer,
            "launch-order": peer,
            "bounded": peer,
            "lazy-pairs": peer,
        }
        return by_name.get(self.semantics, "one")

    def _streams(self) -> None:
        last: dict[tuple[int, object], list[int]] = {}
        before: dict[int, list[int]] = {}
        for i in self.peer:
            key = (self.home[i], self._stream(i))
            if self.batches[i][0] == i:
                before[i] = last.get(key, [])
                last[key] = self.batches[i]
        for unit in self._units():
            ended = [done for start in unit for done in before[start]]
            whole = [(self.home[s], self.batches[s][-1] - self.first[self.home[s]]) for s in unit]
            for i in (i for start in unit for i in self.batches[start]):
                self.ops[i].ended += ended
                if "batch" in self.semantics:
                    self.ops[i].reach += [(rank, at + 1) for rank, at in whole]

    def _units(self) -> list[list[int]]:
        """The first ends of batches that start together."""
        starts = [i for i in self.peer if self.batches[i][0] == i]
        unit = {start: [start] for start in starts}
        if self.semantics == "whole-batches":
            for sends, recvs in self.channels.values():
                for send, recv in zip(sends, recvs, strict=True):
                    one, other = unit[self.batches[send][0]], unit[self.batches[recv][0]]
                    if one is not other:
                        one += other
                        unit |= dict.fromkeys(other, one)
        return list({id(each): each for each in unit.values()}.values())

    def _first_uses(self) -> None:
        first: dict[tuple[int, int], int] = {}
        for i in self.peer:
            first.setdefault((self.home[i], self.peer[i]), i)
        for (r, peer), i in first.items():
            self.ops[i].partner = first[peer, r]

    def text(self) -> str:
        launched: list[list[int]] = [[] for _ in self.orders]
        for i in self.peer:
            self.ops[i].launch = len(launched[self.home[i]])
            launched[self.home[i]].append(i)
        held = HELD.get(self.semantics, UNBUFFERED)
        flags = [int(self.semantics in BLOCKING), int(self.semantics == "launch-order")]
        rows: list[list[int]] = [[len(self.orders), len(self.channels), held, *flags, *self.first]]
        for op in self.ops:
            reach = [number for pair in op.reach for number in pair]
            head = [op.kind, op.channel, op.number, op.token]
            waits = [len(op.ended), *op.ended, len(op.reach), *reach]
            rows.append([*head, *waits, op.partner, op.launch])
        rows += [[len(sends), *sends, *recvs] for sends, recvs in self.channels.values()]
        rows += [[len(own), *own] for own in launched]
        return "\n".join(" ".join(map(str, row)) for row in rows) + "\n"


def numbers_of(wiring: Wiring, orders: list[list[Action]], semantics: str) -> str:
    """What the model reads of a program. Precondition: its messages match."""
    return _Numbers(wiring, orders, semantics).text()
