"""`python -m dlag_node.solvers`: compile the kernels now rather than in the first round."""

from __future__ import annotations

from dlag_node.solvers import warm_up


def main() -> None:
    """Warm up and say how long it took."""
    done = warm_up()
    print(f"kernels ready in {done.seconds:.2f} s: {done.compiled} compiled, {done.loaded} cached")


if __name__ == "__main__":
    main()
