"""Which BLAS this process has, and the kernels that it chose for the processor.

What LAPACK computes (newton, chord, closed, tree) has the bits of these kernels. OpenBLAS takes
others where OPENBLAS_CORETYPE names them.
"""

from __future__ import annotations

from threadpoolctl import threadpool_info


def blas_names() -> list[str]:
    """Such as `openblas 0.3.31 Haswell`: numpy's, and scipy's if it has another one."""
    import scipy.linalg  # noqa: F401, which brings its own library along

    return sorted({_name(each) for each in threadpool_info() if each["user_api"] == "blas"})


def _name(library: dict[str, object]) -> str:
    kernels = library.get("architecture")  # of OpenBLAS, BLIS and MKL have one or none
    named = f"{library['internal_api']} {library['version']}"
    return named if kernels is None else f"{named} {kernels}"
