# The image that cnibench runs in pods of a cluster: the programs of its steps and
# cnibench itself. `make image` builds it; the context is bin/image, which holds
# what is added for each architecture.
#
# Debian 13 has iperf3 3.18; 3.16 is the first that sends streams from threads of
# their own. Debian 12 (bookworm-slim) has 3.12: give a later one to make image.
ARG BASE=debian:trixie-slim
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      iperf3 qperf nginx-light vsftpd openssh-server openssh-client curl iproute2 ethtool util-linux \
 && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_* \
 && mkdir -p /run/sshd
ARG TARGETARCH
COPY ${TARGETARCH}/ /
LABEL org.opencontainers.image.title=cnibench org.opencontainers.image.licenses=Apache-2.0
ENTRYPOINT ["/usr/local/bin/cnibench"]
