# Without arguments the image serves the demo. Other arguments serve a cluster, or a dump of one (docs/install.md).
# To pin the base: --build-arg BASE_DIGEST=sha256:...
# With the packages for selectors of devices, 17 MB more: --build-arg LOCK=requirements-devices.lock
ARG BASE=docker.io/library/python:3.11-slim
ARG BASE_DIGEST=""

FROM ${BASE}${BASE_DIGEST:+@${BASE_DIGEST}} AS build
# pip has its own environment, so that it is not in the final one.
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/kindred
ARG LOCK=requirements.lock
COPY requirements.lock requirements-devices.lock /src/
RUN /opt/pip/bin/pip --python /opt/kindred/bin/python install --no-cache-dir --disable-pip-version-check \
        --no-compile --require-hashes -r "/src/${LOCK}" \
    && find /opt/kindred/bin -type f -delete \
    && cd /opt/kindred/lib/python3*/site-packages \
    # Half of `kubernetes` is its asyncio variant, which Kindred does not import, and two thirds of `cel_expr_python` are
    # libraries that its main module has, too. The others are for builds or tests.
    && rm -rf kubernetes/aio cel_expr_python/ext numpy/f2py numpy/distutils numpy/_core/include numpy/_core/lib numpy/random/lib \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && find . -type f -name '*.[ach]' -delete -o -name '*.py[xd]' -delete -o -name '*.pxi' -delete \
        -o -name conftest.py -delete
# Plain files on the path: without a build, no unlocked package is downloaded.
COPY app /src/app
COPY core /src/core
# Compiled here, because the root is read-only later. The hash seed orders the members of frozen sets in what is compiled.
RUN set -eu; site="$(/opt/kindred/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"; \
    cp -r /src/app /src/core "$site"; \
    printf '#!/opt/kindred/bin/python\nfrom app.commands.cli import main\n\nmain(prog_name="kindred")\n' > /opt/kindred/bin/kindred; \
    chmod -R u=rwX,go=rX /opt/kindred; chmod 755 /opt/kindred/bin/kindred; \
    PYTHONHASHSEED=0 /opt/kindred/bin/python -m compileall -q -f -j 0 --invalidation-mode unchecked-hash "$site"

FROM ${BASE}${BASE_DIGEST:+@${BASE_DIGEST}} AS base
ARG BASE
ARG BASE_DIGEST
# Removes tools of installation and build, and parts of the standard library that a service does not need. Compiles the
# rest, which Python's images do not. Clears setuid and setgid bits, because no program here may change its user.
RUN set -eu; library="$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"; \
    cd "$library"; rm -rf ensurepip distutils lib2to3 idlelib tkinter turtledemo test config-* \
        site-packages/* dist-packages/* /usr/lib/python3/dist-packages/* /usr/share/python-wheels; \
    rm -rf "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')"; \
    for folder in /usr/bin /usr/local/bin; do \
        cd "$folder"; rm -f pip* wheel* easy_install* idle* 2to3* pydoc* py3compile py3clean python*-config pyvenv*; \
    done; \
    PYTHONHASHSEED=0 python3 -m compileall -q -f -j 0 --invalidation-mode unchecked-hash "$library"; \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +; \
    echo 'kindred:x:65532:65532::/nonexistent:/usr/sbin/nologin' >> /etc/passwd; \
    echo 'kindred:x:65532:' >> /etc/group
ENV PATH=/opt/kindred/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.base.name=${BASE} org.opencontainers.image.base.digest=${BASE_DIGEST}
USER 65532:65532
STOPSIGNAL SIGTERM

# `--target load`: locust with the simulated schedulers of tests/load, for docker-compose.yml.
FROM build AS build-load
COPY requirements-load.lock /src/
RUN /opt/pip/bin/pip --python /opt/kindred/bin/python install --no-cache-dir --disable-pip-version-check \
        --require-hashes -r /src/requirements-load.lock

FROM base AS load
COPY --from=build-load /opt/kindred /opt/kindred
WORKDIR /load
COPY tests/__init__.py tests/
COPY tests/bench tests/bench
COPY tests/load tests/load
COPY app/demo/requests requests
ENV PYTHONPATH=/load
EXPOSE 8089
ENTRYPOINT ["locust", "-f", "tests/load/locustfile.py"]

FROM base AS kindred
ARG VERSION=""
ARG REVISION=""
LABEL org.opencontainers.image.title="Kindred" \
    org.opencontainers.image.description="A kube-scheduler extender that answers for a whole class of pods at once" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version=${VERSION} \
    org.opencontainers.image.revision=${REVISION}
COPY --from=build /opt/kindred /opt/kindred
EXPOSE 8888 8889
# For docker: Kubernetes has its own probes. The health port wins, because it has no TLS. No proxy of the environment is asked.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "\
from os import environ; from urllib.request import ProxyHandler, build_opener; \
port = environ.get('KINDRED_HEALTH_PORT') or environ.get('KINDRED_LISTEN', '8888').rpartition(':')[2]; \
build_opener(ProxyHandler({})).open(f'http://127.0.0.1:{port}/livez', timeout=4)"]
ENTRYPOINT ["kindred"]
# A flag and no variable: a variable would win over `listen` in the file of settings.
CMD ["serve", "--demo", "--listen", "0.0.0.0:8888"]
