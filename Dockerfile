# The image of Portcullis: one Node, the bundle, nothing else that runs. docs/install.md says how to build, verify and run it.
# Steps are in exec form: no stage needs a shell.

# What is pinned. A release gives both by digest (--build-arg BASE=...@sha256:...); the tags here move.
#   NODE: the official image; its Node is the version of package.json, and needs glibc and libstdc++.
#   BASE: distroless "cc" has those two, CA certificates, time zones and the user 65532, and no shell.
ARG NODE=docker.io/library/node:24.20.0-bookworm-slim
ARG BASE=gcr.io/distroless/cc-debian12:nonroot
# Where the packages that are bundled come from: the stage below, or, without a network, an image that has /src/node_modules.
ARG DEPENDENCIES=dependencies

FROM ${NODE} AS node

FROM ${NODE} AS dependencies
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN ["npm", "ci", "--ignore-scripts"]

FROM ${DEPENDENCIES} AS build
WORKDIR /src
COPY . .
# What git would say; .git is not in the build context.
ARG PORTCULLIS_COMMIT=
ARG PORTCULLIS_COMMIT_DATE=
RUN ["node", "build/build.ts", "--out", "/out/dist"]
RUN ["node", "-e", "fs.mkdirSync('/out/data')"]

FROM ${BASE}
ARG PORTCULLIS_VERSION=0.1.0
ARG PORTCULLIS_COMMIT=
ARG PORTCULLIS_COMMIT_DATE=
LABEL org.opencontainers.image.title="portcullis" \
      org.opencontainers.image.description="Kubernetes-aware layer-7 API gateway in front of kube-apiservers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${PORTCULLIS_VERSION}" \
      org.opencontainers.image.revision="${PORTCULLIS_COMMIT}" \
      org.opencontainers.image.created="${PORTCULLIS_COMMIT_DATE}"
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=build /out/dist /opt/portcullis/dist
COPY LICENSE /opt/portcullis/LICENSE
COPY deploy/image/portcullis /usr/local/bin/portcullis
COPY --from=build --chown=65532:65532 /out/data /var/lib/portcullis
# By number, so that Kubernetes can see that it is not root (runAsNonRoot).
USER 65532:65532
ENV PORTCULLIS_DATA_DIR=/var/lib/portcullis
# As in bin/portcullis: the first line of the program has room for one flag of Node.
ENV NODE_OPTIONS=--v8-pool-size=1
VOLUME /var/lib/portcullis
EXPOSE 8443 9443
ENTRYPOINT ["/usr/local/bin/portcullis"]
CMD ["serve"]
