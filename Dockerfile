# The image serves the demo as it is; give another command to serve a dump of yours (see docker-compose.yml).
ARG BASE=python:3.11-slim
FROM ${BASE} AS build
COPY requirements.lock /src/
RUN python3 -m venv /opt/kindred \
    && /opt/kindred/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /src/requirements.lock
COPY app /src/app
COPY core /src/core
# Plain files on the path: nothing has to be built, so nothing unlocked is downloaded.
RUN cp -r /src/app /src/core "$(/opt/kindred/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && printf '#!/bin/sh\nexec /opt/kindred/bin/python -m app.cli "$@"\n' > /opt/kindred/bin/kindred \
    && chmod 755 /opt/kindred/bin/kindred

FROM ${BASE}
COPY --from=build /opt/kindred /opt/kindred
ENV PATH=/opt/kindred/bin:$PATH KINDRED_LISTEN_HOST=0.0.0.0
USER 65532:65532
EXPOSE 8888
ENTRYPOINT ["kindred"]
CMD ["serve", "--demo"]
