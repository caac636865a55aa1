"""What people use: local mesh, simulator, report, figures, live view."""
