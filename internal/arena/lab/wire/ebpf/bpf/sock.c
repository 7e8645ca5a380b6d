/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Services at the socket, as Cilium's kube-proxy replacement serves them
 * (bpf/bpf_sock.c of cilium/cilium v1.15.2): connect() and sendmsg() to a
 * Service's address go to a backend's, and no packet is translated.
 */
#include "service.h"

/* The network namespaces that are served, by cookie: the lab's pods and nodes,
 * and nobody else of the cgroup. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} namespaces SEC(".maps");

struct flow {
	__u64 socket;
	__be32 addr;
	__be16 port;
	__u16 pad;
};

/* The Service that a socket believes to talk to, for its backend. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, struct address);
} believed SEC(".maps");

enum { ALLOW = 1 };

__inline_always void forward(struct bpf_sock_addr *ctx)
{
	struct address was = {.addr = ctx->user_ip4, .port = ctx->user_port};
	struct address *backend;
	struct service_key key;
	struct service *svc;
	struct flow flow = {};
	__u64 cookie = bpf_get_netns_cookie(ctx);
	__u32 number;

	if (ctx->protocol != IPPROTO_TCP && ctx->protocol != IPPROTO_UDP)
		return;
	if (!bpf_map_lookup_elem(&namespaces, &cookie))
		return;
	svc = service_of(&key, was.addr, was.port, ctx->protocol);
	if (!svc)
		return;
	number = select_backend(&key, svc);
	backend = bpf_map_lookup_elem(&backends, &number);
	if (!backend)
		return;
	flow.socket = bpf_get_socket_cookie(ctx);
	flow.addr = backend->addr;
	flow.port = backend->port;
	if (bpf_map_update_elem(&believed, &flow, &was, BPF_ANY) < 0)
		return;
	ctx->user_ip4 = backend->addr;
	ctx->user_port = backend->port;
}

__inline_always void backward(struct bpf_sock_addr *ctx)
{
	struct flow flow = {};
	struct address *was;

	flow.socket = bpf_get_socket_cookie(ctx);
	flow.addr = ctx->user_ip4;
	flow.port = ctx->user_port;
	was = bpf_map_lookup_elem(&believed, &flow);
	if (!was)
		return;
	ctx->user_ip4 = was->addr;
	ctx->user_port = was->port;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	forward(ctx);
	return ALLOW;
}

SEC("cgroup/sendmsg4")
int sendmsg4(struct bpf_sock_addr *ctx)
{
	forward(ctx);
	return ALLOW;
}

SEC("cgroup/recvmsg4")
int recvmsg4(struct bpf_sock_addr *ctx)
{
	backward(ctx);
	return ALLOW;
}

SEC("cgroup/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	backward(ctx);
	return ALLOW;
}

char _license[] SEC("license") = "GPL";
