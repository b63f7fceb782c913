# The container image: what uv.lock names and nothing else, for a user without rights.
#   docker build --build-arg VERSION=0.1.0 --tag registry.example.com/tenure:0.1.0 .
# VERSION is what the program says of itself: git is not here to be asked for the tag.
# The Python is the one that the tests run on; BASE takes another that pyproject.toml allows. Name it by
# its digest, so that a build is the same tomorrow (docs/security.md says how to find it):
#   docker build --build-arg BASE=python:3.11-slim-bookworm@sha256:… .
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
ENV UV_PROJECT_ENVIRONMENT=/opt/tenure \
    UV_COMPILE_BYTECODE=1 \
    PYC_INVALIDATION_MODE=UNCHECKED_HASH \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1
# The installer is locked like everything else.
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    "uv==$(awk '/^name = "uv"$/ { getline; gsub(/"/, ""); print $3 }' uv.lock)"
# First what others wrote: that layer stays as long as the lock does.
RUN uv sync --frozen --no-dev --no-install-project
ARG VERSION=0.1.dev0
COPY src src
COPY examples examples
# Without the notes of uv on when it was: two builds of one commit are to be the same.
RUN SETUPTOOLS_SCM_PRETEND_VERSION="${VERSION}" uv sync --frozen --no-dev --no-editable \
    && find /opt/tenure -path '*/tenure-*.dist-info/uv_cache.json' -delete \
    && sed -i '/uv_cache.json/d' /opt/tenure/lib/python*/site-packages/tenure-*.dist-info/RECORD

FROM ${BASE}
ARG BASE
LABEL org.opencontainers.image.title="tenure" \
      org.opencontainers.image.description="Manages the life of Kubernetes nodes" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="${BASE}"
COPY --from=build /opt/tenure /opt/tenure
ENV PATH=/opt/tenure/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# The chart asks for the same; it needs no entry in /etc/passwd.
USER 65532:65532
WORKDIR /
EXPOSE 8080 8081 9443
ENTRYPOINT ["tenure"]
CMD ["run"]
