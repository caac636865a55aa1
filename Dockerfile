# One image for the coordinator, the nodes and the laboratory; what a container is, its command says.
# BASE_IMAGE: any image with Python 3.11 or newer as python3, with venv, and util-linux.
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python3 -m venv /opt/build && python3 -m venv --without-pip /opt/venv
# Two steps: the first checks the hash of every locked wheel, the second takes them from there.
COPY requirements.txt /src/
RUN /opt/build/bin/pip download --quiet --no-deps --only-binary=:all: --require-hashes \
      --dest /opt/locked -r /src/requirements.txt
COPY pyproject.toml README.md LICENSE /src/
COPY dlag_node /src/dlag_node
COPY coordinator /src/coordinator
COPY dlag_lab /src/dlag_lab
# Image layers keep whole seconds only, and numba compares a source's time to the nanosecond: so
# round the times before anything is compiled. What tests itself is not needed at run time.
RUN /opt/build/bin/pip wheel --quiet --no-deps --wheel-dir /opt/own /src \
 && /opt/build/bin/pip --python /opt/venv/bin/python install --quiet --no-compile \
      --no-index --find-links /opt/locked "dlag-mesh[lab] @ file://$(ls /opt/own/*.whl)" \
 && find /opt/venv/lib -depth -type d '(' -name tests -o -name sample_data ')' -exec rm -r {} + \
 && find /opt/venv/lib -type f -exec touch --date=@1700000000 {} + \
 && /opt/venv/bin/python -m compileall -q /opt/venv/lib

FROM ${BASE_IMAGE}
# One thread for each process: the same bits everywhere, and no fight for the cores.
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    OPENBLAS_NUM_THREADS=1 \
    MKL_NUM_THREADS=1 \
    NUMBA_NUM_THREADS=1 \
    NUMBA_CACHE_DIR=/var/cache/dlag \
    MPLCONFIGDIR=/var/cache/dlag/matplotlib
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin dlag \
 && install -d -o dlag -g dlag /var/cache/dlag /mesh /mesh/nodes /mesh/state /results \
 && install -d -o dlag -g dlag -m 1777 /trust /keys && install -d -o dlag -g dlag /trust/nodes
COPY --from=build /opt/venv /opt/venv
USER dlag
# Kernels for this processor (on another kind a container compiles them again when it starts), and the
# fonts' index. Anybody may write there: numba and matplotlib use no cache that they cannot write to, and
# the laboratory runs as whoever owns the results.
RUN umask 0 && python -m dlag_node.solvers && python -c 'import matplotlib.font_manager'
CMD ["dlag-node", "--help"]
