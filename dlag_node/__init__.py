"""What runs on a device: problems, solvers, graphs, methods, wire, rounds, net."""
