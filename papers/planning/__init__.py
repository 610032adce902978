"""What planners of papers share: how one is asked, its deployments, and the plan it stands in."""
