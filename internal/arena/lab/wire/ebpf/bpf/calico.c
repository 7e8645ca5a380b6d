/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The eBPF dataplane of Calico 3.27, IPv4, without policies: what each packet
 * meets in felix/bpf-gpl of projectcalico/calico v3.27.2 (tc.c, conntrack.h,
 * nat_lookup.h, fib.h, connect.h), in the same order and with as many map
 * look-ups. docs/dev/ebpf.md says what is left out.
 */
#include "packet.h"

volatile const bool workload; /* the interface is a pod's, else the node's to others */
volatile const __u32 counters_index;

enum { PASS = TC_ACT_UNSPEC };
enum { MARK_SEEN = 0x01000000, MARK_BYPASS = 0x03000000 };
enum { NORMAL, NAT_FORWARD, NAT_REVERSE };
enum { ROUTE_WORKLOAD = 1, ROUTE_LOCAL = 2, ROUTE_HOST = 4, ROUTE_IN_POOL = 8 };

struct ct_key {
	__u32 proto;
	__be32 a, b;
	__be16 a_port, b_port;
};

struct leg {
	__u64 bytes;
	__u32 packets, seqno;
	__u32 syn_seen : 1, ack_seen : 1, fin_seen : 1, rst_seen : 1, approved : 1, opener : 1;
	__u32 ifindex;
};

struct ct_value {
	__u64 created, last_seen;
	__u8 type, flags, pad[6];
	union {
		struct {
			struct leg a_to_b, b_to_a;
			__be32 tunnel, original;
			__be16 original_port, original_sport;
			__be32 original_source;
		};
		struct ct_key reverse; /* of NAT_FORWARD */
	};
};

struct prefix {
	__u32 length;
	__be32 addr;
};

struct route_entry {
	__u32 flags;
	__u32 next; /* hop, or index of the interface */
};

struct frontend_key {
	__u32 length;
	__be32 addr;
	__be16 port;
	__u8 proto;
	__be32 source;
	__u8 pad;
} __attribute__((packed));

struct frontend {
	__u32 id, count, local, affinity, flags;
};

struct backend_key {
	__u32 id, ordinal;
};

struct backend {
	__be32 addr;
	__be16 port;
	__u16 pad;
};

struct socket_flow {
	__u64 cookie;
	__be32 addr;
	__be16 port;
	__u16 proto;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 512000);
	__type(key, struct ct_key);
	__type(value, struct ct_value);
} conntrack SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct prefix);
	__type(value, struct route_entry);
} routes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct frontend_key);
	__type(value, struct frontend);
} frontends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct backend_key);
	__type(value, struct backend);
} backends SEC(".maps");

/* What a socket that was sent to a backend had asked for. One for all nodes,
 * as they share the control group. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct socket_flow);
	__type(value, struct backend);
} socket_flows SEC(".maps");

/* The lab's network namespaces, by cookie: nobody else is served. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} namespaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64[16]);
} counters SEC(".maps");

__inline_always struct route_entry *route_to(__be32 addr)
{
	struct prefix key = {.length = 32, .addr = addr};

	return bpf_map_lookup_elem(&routes, &key);
}

/* nat_lookup finds a backend of the Service at that address. */
__inline_always struct backend *nat_lookup(__be32 source, __be32 addr, __be16 port, __u8 proto)
{
	struct frontend_key key = {.length = 88, .addr = addr, .port = port, .proto = proto, .source = source};
	struct frontend *front = bpf_map_lookup_elem(&frontends, &key);
	struct backend_key back = {};

	if (!front || !front->count)
		return 0;
	back.id = front->id;
	back.ordinal = bpf_get_prandom_u32() % front->count;
	return bpf_map_lookup_elem(&backends, &back);
}

/* ct_key_of is the same for both directions; it says whether the packet goes
 * from a to b. */
__inline_always bool ct_key_of(struct ct_key *key, __u8 proto, __be32 s, __be16 sport, __be32 d, __be16 dport)
{
	bool forward = s < d || (s == d && sport < dport);

	key->proto = proto;
	key->a = forward ? s : d;
	key->b = forward ? d : s;
	key->a_port = forward ? sport : dport;
	key->b_port = forward ? dport : sport;
	return forward;
}

/* ct_create makes a connection's entry, which this interface lets through. */
__inline_always int ct_create(struct __sk_buff *skb, const struct packet *p, bool to_host, __u8 type, __be32 original, __be16 original_port)
{
	struct ct_value value = {.type = type};
	struct ct_key key = {};
	bool forward = ct_key_of(&key, p->proto, p->saddr, p->sport, p->daddr, p->dport);
	struct leg *from = forward ? &value.a_to_b : &value.b_to_a;
	struct leg *to = forward ? &value.b_to_a : &value.a_to_b;

	value.created = value.last_seen = bpf_ktime_get_ns();
	value.original = original;
	value.original_port = original_port;
	from->opener = 1;
	from->syn_seen = !!(p->tcp_flags & TCP_SYN);
	from->ifindex = to_host ? skb->ifindex : 0;
	if (to_host)
		from->approved = 1;
	else
		to->approved = 1;
	return bpf_map_update_elem(&conntrack, &key, &value, BPF_ANY);
}

/* nat_create makes the two entries of a translated connection: the forward one
 * points at the one that is tracked. */
__inline_always int nat_create(struct __sk_buff *skb, const struct packet *p, const struct backend *to)
{
	struct ct_value value = {.type = NAT_FORWARD};
	struct ct_key key = {};
	struct packet after = *p;

	after.daddr = to->addr;
	after.dport = to->port;
	if (ct_create(skb, &after, true, NAT_REVERSE, p->daddr, p->dport) < 0)
		return -1;
	ct_key_of(&value.reverse, p->proto, p->saddr, p->sport, to->addr, to->port);
	value.created = value.last_seen = bpf_ktime_get_ns();
	ct_key_of(&key, p->proto, p->saddr, p->sport, p->daddr, p->dport);
	return bpf_map_update_elem(&conntrack, &key, &value, BPF_ANY);
}

/* closed says that both sides have ended the connection. */
__inline_always bool closed(const struct ct_value *v)
{
	return (v->a_to_b.fin_seen || v->a_to_b.rst_seen) && (v->b_to_a.fin_seen || v->b_to_a.rst_seen);
}

/* ct_find finds the entry that tracks the packet's connection, and leaves its
 * key in key; 0 is a new connection. translated says that there was a forward
 * entry before it. A SYN to a closed connection is a new one. */
__inline_always struct ct_value *ct_find(struct ct_key *key, const struct packet *p, bool *translated)
{
	struct ct_value *entry = bpf_map_lookup_elem(&conntrack, key), *tracked = entry;
	bool syn = (p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
	__u64 now = bpf_ktime_get_ns();
	struct ct_key reverse;
	__u8 type;

	*translated = false;
	if (!entry)
		return 0;
	entry->last_seen = now;
	type = entry->type;
	if (type == NAT_FORWARD) {
		reverse = entry->reverse;
		tracked = bpf_map_lookup_elem(&conntrack, &reverse);
		if (!tracked)
			return 0;
	}
	if (syn && type != NAT_REVERSE && closed(tracked)) {
		bpf_map_delete_elem(&conntrack, key);
		if (type == NAT_FORWARD)
			bpf_map_delete_elem(&conntrack, &reverse);
		return 0;
	}
	if (type == NAT_FORWARD) {
		*translated = true;
		*key = reverse;
		tracked->last_seen = now;
	}
	return tracked;
}

/* asked looks for what the packet's socket had asked for before it was sent to
 * a backend; policies are about that. */
__inline_always void asked(struct __sk_buff *skb, const struct packet *p)
{
	struct socket_flow flow = {.cookie = bpf_get_socket_cookie(skb), .addr = p->daddr, .port = p->dport, .proto = p->proto};

	if (flow.cookie)
		bpf_map_lookup_elem(&socket_flows, &flow);
}

__inline_always int handle(struct __sk_buff *skb, bool to_host)
{
	struct backend *backend = 0;
	struct ct_value *tracked;
	struct ct_key key = {};
	struct leg *from, *to;
	struct packet p;
	struct route_entry *r;
	bool forward, translated, approved, bypass = false;
	__u32 index = counters_index;
	__u64 *counted;

	if (!to_host && skb->mark == MARK_BYPASS)
		return PASS;
	counted = bpf_map_lookup_elem(&counters, &index);
	if (counted)
		counted[0]++;
	if (skb->protocol != bpf_htons(ETH_P_IP))
		return PASS; /* ARP */
	if (!parse(skb, &p))
		return TC_ACT_SHOT;
	forward = ct_key_of(&key, p.proto, p.saddr, p.sport, p.daddr, p.dport);
	tracked = ct_find(&key, &p, &translated);
	if (tracked) {
		if (translated) {
			/* The client's own side of the tracked entry. */
			forward = key.a == p.saddr && key.a_port == p.sport;
			if (to_host && !translate(skb, &p, false, forward ? key.b : key.a, forward ? key.b_port : key.a_port))
				return TC_ACT_SHOT;
		}
		from = forward ? &tracked->a_to_b : &tracked->b_to_a;
		to = forward ? &tracked->b_to_a : &tracked->a_to_b;
		if (!translated && tracked->type == NAT_REVERSE && !to_host && to->opener) {
			if (!translate(skb, &p, true, tracked->original, tracked->original_port))
				return TC_ACT_SHOT;
		}
		if (p.proto == IPPROTO_TCP) {
			from->syn_seen |= !!(p.tcp_flags & TCP_SYN);
			from->ack_seen |= from->syn_seen && !(p.tcp_flags & TCP_SYN);
			from->fin_seen |= !!(p.tcp_flags & TCP_FIN);
			from->rst_seen |= !!(p.tcp_flags & TCP_RST);
		}
		approved = to_host ? from->approved : to->approved;
		if (!approved) {
			/* Let in at the other end, not yet here: policy. */
			route_to(p.daddr);
			if (to_host)
				from->approved = 1;
			else
				to->approved = 1;
		}
		bypass = tracked->type == NORMAL && from->approved && to->approved;
	} else {
		if (to_host || !(skb->mark & MARK_SEEN))
			backend = nat_lookup(p.saddr, p.daddr, p.dport, p.proto);
		r = route_to(p.saddr);
		if (workload && to_host && (!r || !(r->flags & ROUTE_LOCAL)))
			return TC_ACT_SHOT; /* not the pod's own address */
		asked(skb, &p);
		route_to(backend ? backend->addr : p.daddr);
		if (backend && to_host) {
			if (nat_create(skb, &p, backend) < 0 || !translate(skb, &p, false, backend->addr, backend->port))
				return TC_ACT_SHOT;
		} else if (ct_create(skb, &p, to_host, NORMAL, 0, 0) < 0) {
			return TC_ACT_SHOT;
		}
	}
	skb->mark = bypass ? MARK_BYPASS : MARK_SEEN;
	/* What has come without an Ethernet header takes the node's stack
	 * (CALI_FIB_ENABLED in bpf.h). */
	return to_host && ETHERNET ? route(skb, &p) : PASS;
}

/* Towards the node's stack: what a pod sends, what the uplink brings. */
SEC("tc")
int to_host(struct __sk_buff *skb)
{
	return handle(skb, true);
}

/* From the node's stack, or past it: to a pod, to the uplink. */
SEC("tc")
int from_host(struct __sk_buff *skb)
{
	return handle(skb, false);
}

/* connect_balancer is for TCP only (BPFConnectTimeLoadBalancing: TCP). */
SEC("cgroup/connect4")
int connect_balancer(struct bpf_sock_addr *ctx)
{
	struct backend was = {.addr = ctx->user_ip4, .port = ctx->user_port};
	__u64 cookie = bpf_get_netns_cookie(ctx);
	struct socket_flow flow = {};
	struct backend *to;

	if (ctx->protocol != IPPROTO_TCP || !bpf_map_lookup_elem(&namespaces, &cookie))
		return 1;
	to = nat_lookup(0, was.addr, was.port, IPPROTO_TCP);
	if (!to)
		return 1;
	flow.cookie = bpf_get_socket_cookie(ctx);
	flow.addr = to->addr;
	flow.port = to->port;
	flow.proto = IPPROTO_TCP;
	bpf_map_update_elem(&socket_flows, &flow, &was, BPF_ANY);
	ctx->user_ip4 = to->addr;
	ctx->user_port = to->port;
	return 1;
}

char _license[] SEC("license") = "GPL";
