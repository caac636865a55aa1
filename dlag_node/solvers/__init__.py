"""The approximate dual gradient: inner loops that solve worker i's subproblem."""
