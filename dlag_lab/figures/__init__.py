"""The pictures of a run. Importing this room imports matplotlib: do it late."""

from dlag_lab.figures.bands import bands
from dlag_lab.figures.convergence import convergence
from dlag_lab.figures.costs import costs
from dlag_lab.figures.mesh import mesh
from dlag_lab.figures.paper import paper_figure
from dlag_lab.figures.raster import raster
from dlag_lab.figures.style import save
from dlag_lab.figures.times import times

__all__ = ["bands", "convergence", "costs", "mesh", "paper_figure", "raster", "times", "save"]
