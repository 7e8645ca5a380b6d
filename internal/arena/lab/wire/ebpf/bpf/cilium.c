/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The datapath of Cilium 1.15, IPv4, without policies: what each packet of a
 * pod meets in bpf/bpf_lxc.c, bpf_overlay.c and bpf_host.c of cilium/cilium
 * v1.15.2, in the same order and with as many map look-ups. docs/dev/ebpf.md says
 * what is left out.
 */
#include "service.h"

/* Set before the programs are loaded, as Cilium's generated headers are. The
 * verifier sees them as constants and drops what they switch off. */
volatile const bool tunnel_mode;     /* VXLAN by the collecting device, or the node's routes */
volatile const bool host_routing;    /* past the node's stack, or through it (legacy) */
volatile const bool per_packet_lb;   /* Services at tc: where the socket does not serve them */
volatile const bool node_port;       /* kube-proxy replacement: Services at the node's devices */
volatile const bool masquerade;      /* in eBPF, at the uplink */
volatile const bool notify;          /* flow events for Hubble */
volatile const __u32 aggregation;    /* monitor-aggregation: 0 none, 3 medium */
volatile const __u32 report_seconds; /* monitor-aggregation-interval */
volatile const __u32 tunnel_device;  /* index of cilium_vxlan */
volatile const __u32 uplink;         /* index of the only device to other nodes */
volatile const __u32 wireguard;      /* index of cilium_wg0, which encrypts; 0 none */
volatile const __be16 tunnel_port;   /* of VXLAN */

/* Of one endpoint; other programs have zeros. */
volatile const __u32 endpoint_id;
volatile const __u32 endpoint_identity;
volatile const __be32 endpoint_addr;
volatile const __u64 endpoint_node_mac; /* its first six bytes; clang reads no struct as volatile */

enum { WORLD = 2 }; /* reserved identity */

enum { TO_LXC = 0, TO_STACK = 3, TO_OVERLAY = 4, FROM_LXC = 5, FROM_OVERLAY = 9, FROM_NETWORK = 10, TO_NETWORK = 11 };
enum { CT_NEW, CT_ESTABLISHED, CT_REPLY };
enum { EGRESS = 0, INGRESS = 1, SERVICE = 4, NODE_PORT = 8 }; /* scope of a connection's entry */
enum { ENCRYPTED = 0x1e00 }; /* mark of what WireGuard sends */
enum { ADMITTED = 1 }; /* tc_index of what to_container has let in */
enum { CB_IDENTITY = 1, CB_FROM_TUNNEL = 2, CB_IFINDEX = 3 };

struct connection {
	__be32 daddr, saddr;
	__be16 dport, sport;
	__u8 proto, scope;
} __attribute__((packed));

struct connection_state {
	__u64 rx_packets, rx_bytes, tx_packets, tx_bytes;
	__u32 lifetime; /* seconds since boot */
	__u8 rx_closing, tx_closing, seen_non_syn, rx_flags_seen, tx_flags_seen, pad[3];
	__u32 index;   /* of the Service that it came through, 0 none */
	__u32 backend; /* of scope SERVICE */
	__u32 source_identity;
	__u32 last_rx_report, last_tx_report;
};

struct endpoint {
	__u32 ifindex;
	__u16 id;
	__u16 host; /* an address of the node itself */
	__u32 identity;
	struct mac mac, node_mac;
};

struct prefix {
	__u32 length;
	__be32 addr;
};

struct translation { /* of a source address */
	__u64 created, tracked, pad[2];
	__be32 addr;
	__be16 port;
	__u16 rest;
};

struct remote {
	__u32 identity;
	__be32 tunnel_endpoint; /* 0: none */
};

struct policy_key {
	__u32 length;
	__u32 identity;
	__u8 egress, proto;
	__be16 dport;
};

struct policy_entry {
	__u16 proxy_port;
	__u16 deny;
	__u32 pad;
	__u64 packets, bytes;
};

struct metric_key {
	__u8 reason, direction;
	__u16 pad[3];
};

struct metric {
	__u64 count, bytes;
};

struct flow_event {
	__u8 type, point;
	__u16 source;
	__u32 hash;
	__u32 length;
	__u16 captured, version;
	__u32 source_identity, destination_identity;
	__u16 destination;
	__u8 reason, flags;
	__u32 ifindex;
	__be32 original[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct connection);
	__type(value, struct connection_state);
} ct_tcp SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct connection);
	__type(value, struct connection_state);
} ct_any SEC(".maps");

/* Source addresses that the node has translated: none, as nothing leaves the
 * cluster, and yet what belongs to a node port is looked for here. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 131072);
	__type(key, struct connection);
	__type(value, struct translation);
} snat SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __be32);
	__type(value, struct endpoint);
} endpoints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct prefix);
	__type(value, struct remote);
} ipcache SEC(".maps");

/* Of one endpoint. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct policy_key);
	__type(value, struct policy_entry);
} policy SEC(".maps");

/* The program that lets packets into an endpoint, by its number. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} policy_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 64);
	__type(key, struct metric_key);
	__type(value, struct metric);
} metrics SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

__inline_always void count(struct __sk_buff *skb, __u8 direction)
{
	struct metric_key key = {.direction = direction};
	struct metric *m = bpf_map_lookup_elem(&metrics, &key);
	struct metric first = {.count = 1, .bytes = skb->len};

	if (m) {
		m->count++;
		m->bytes += skb->len;
	} else {
		bpf_map_update_elem(&metrics, &key, &first, BPF_ANY);
	}
}

enum { CAPTURE = 128 }; /* bytes of the packet that an event carries */

/* trace counts the packet at this point and tells Hubble of it. */
__inline_always void trace(struct __sk_buff *skb, __u8 point, __u32 from, __u32 to, __u8 reason, bool report)
{
	__u64 captured = skb->len < CAPTURE ? skb->len : CAPTURE;
	struct flow_event event = {};

	if (point != FROM_LXC)
		count(skb, point == TO_LXC || point == FROM_OVERLAY || point == FROM_NETWORK);
	if (!notify)
		return;
	if (aggregation && (point == FROM_LXC || point == FROM_OVERLAY || point == FROM_NETWORK))
		return;
	if (aggregation >= 3 && !report)
		return;
	event.type = 4;
	event.point = point;
	event.source = endpoint_id;
	event.hash = bpf_get_hash_recalc(skb);
	event.length = skb->len;
	event.captured = captured;
	event.version = 1;
	event.source_identity = from;
	event.destination_identity = to;
	event.reason = reason;
	event.ifindex = skb->ifindex;
	bpf_perf_event_output(skb, &events, captured << 32 | BPF_F_CURRENT_CPU, &event, sizeof(event));
}

__inline_always void *ct_map(const struct packet *p)
{
	return p->proto == IPPROTO_TCP ? (void *)&ct_tcp : (void *)&ct_any;
}

__inline_always void ct_key(struct connection *key, const struct packet *p, __u8 scope, bool reply)
{
	key->saddr = reply ? p->daddr : p->saddr;
	key->daddr = reply ? p->saddr : p->daddr;
	key->sport = reply ? p->dport : p->sport;
	key->dport = reply ? p->sport : p->dport;
	key->proto = p->proto;
	key->scope = scope;
}

/* ct_touch notes the packet in the connection's entry, and says whether it is
 * worth a report: other TCP flags than before, or the interval has passed. A
 * SYN opens a closing connection again. */
__inline_always bool ct_touch(struct __sk_buff *skb, struct connection_state *state, const struct packet *p, __u8 scope)
{
	__u32 now = bpf_ktime_get_ns() / 1000000000;
	__u8 *seen = scope == INGRESS ? &state->rx_flags_seen : &state->tx_flags_seen;
	__u32 *last = scope == INGRESS ? &state->last_rx_report : &state->last_tx_report;
	bool syn = p->tcp_flags & TCP_SYN;
	__u8 flags;

	if (syn && (state->rx_closing || state->tx_closing)) {
		state->rx_closing = state->tx_closing = 0;
		state->rx_flags_seen = state->tx_flags_seen = 0;
		state->seen_non_syn = 0;
	}
	flags = *seen | (p->tcp_flags & (TCP_FIN | TCP_SYN | TCP_RST));
	if (p->proto == IPPROTO_TCP) {
		state->seen_non_syn |= !syn;
		state->lifetime = now + (state->seen_non_syn ? 21600 : 60);
	} else {
		state->lifetime = now + 60;
	}
	if (scope == INGRESS) {
		__sync_fetch_and_add(&state->rx_packets, 1);
		__sync_fetch_and_add(&state->rx_bytes, skb->len);
	} else if (scope == EGRESS) {
		__sync_fetch_and_add(&state->tx_packets, 1);
		__sync_fetch_and_add(&state->tx_bytes, skb->len);
	}
	if (p->tcp_flags & (TCP_FIN | TCP_RST)) {
		if (scope == INGRESS)
			state->rx_closing = 1;
		else
			state->tx_closing = 1;
		if (state->rx_closing && state->tx_closing)
			state->lifetime = now + 10;
	}
	if (*last + report_seconds < now || *seen != flags) {
		*seen = flags;
		*last = now;
		return true;
	}
	return false;
}

/* ct_lookup finds the connection, the reply's side first as ct_lookup4(). */
__inline_always int ct_lookup(struct __sk_buff *skb, const struct packet *p, __u8 scope, struct connection_state **state, bool *report)
{
	struct connection key = {};

	*report = true;
	ct_key(&key, p, scope == EGRESS ? INGRESS : EGRESS, true);
	*state = bpf_map_lookup_elem(ct_map(p), &key);
	if (*state) {
		*report = ct_touch(skb, *state, p, scope);
		return CT_REPLY;
	}
	ct_key(&key, p, scope, false);
	*state = bpf_map_lookup_elem(ct_map(p), &key);
	if (*state) {
		*report = ct_touch(skb, *state, p, scope);
		return CT_ESTABLISHED;
	}
	return CT_NEW;
}

__inline_always int ct_create(struct __sk_buff *skb, const struct packet *p, __u8 scope, __u32 index, __u32 backend, __u32 identity)
{
	struct connection_state state = {};
	struct connection key = {};

	ct_key(&key, p, scope, false);
	state.index = index;
	state.backend = backend;
	state.source_identity = identity;
	ct_touch(skb, &state, p, scope);
	return bpf_map_update_elem(ct_map(p), &key, &state, BPF_ANY);
}

/* allowed asks the endpoint's policy: for the peer's identity, then for all. */
__inline_always bool allowed(struct __sk_buff *skb, const struct packet *p, bool egress, __u32 peer)
{
	struct policy_key key = {.length = 64, .identity = peer, .egress = egress, .proto = p->proto, .dport = p->dport};
	struct policy_entry *entry = bpf_map_lookup_elem(&policy, &key);

	if (!entry) {
		key.identity = 0;
		entry = bpf_map_lookup_elem(&policy, &key);
	}
	if (!entry || entry->deny)
		return false;
	__sync_fetch_and_add(&entry->packets, 1);
	__sync_fetch_and_add(&entry->bytes, skb->len);
	return true;
}

__inline_always struct remote *remote_of(__be32 addr)
{
	struct prefix key = {.length = 32, .addr = addr};

	return bpf_map_lookup_elem(&ipcache, &key);
}

/* deliver hands the packet to a pod of this node: the pod's own program
 * decides (bpf/lib/l3.h, ipv4_local_delivery). */
__inline_always int deliver(struct __sk_buff *skb, const struct endpoint *to, __u32 identity, bool from_tunnel)
{
	struct mac mac = to->mac, node_mac = to->node_mac;
	__u32 id = to->id;

	if (!hop(skb, &node_mac, &mac))
		return TC_ACT_SHOT;
	skb->cb[CB_IDENTITY] = identity;
	skb->cb[CB_FROM_TUNNEL] = from_tunnel;
	skb->cb[CB_IFINDEX] = to->ifindex;
	bpf_tail_call(skb, &policy_calls, id);
	return TC_ACT_SHOT;
}

/* reused says that a SYN begins another connection with the addresses of one
 * that has long closed (bpf/lib/conntrack.h, ct_entry_expired_rebalance). */
__inline_always bool reused(const struct connection_state *state, const struct packet *p)
{
	enum { GRACE = 60 }; /* seconds, bpf-ct-timeout-service-tcp-grace */

	return p->tcp_flags & TCP_SYN && (state->rx_closing || state->tx_closing) &&
	       state->last_tx_report + GRACE <= bpf_ktime_get_ns() / 1000000000;
}

/* balance translates a Service's address to a backend's, the same for every
 * packet of a connection (bpf/lib/lb.h, lb4_local). */
__inline_always bool balance(struct __sk_buff *skb, struct packet *p, __u32 *index)
{
	struct connection connection = {};
	struct connection_state *state;
	struct service_key key;
	struct service *svc = service_of(&key, p->daddr, p->dport, p->proto);
	struct address *backend;
	__u32 number;

	if (!svc)
		return true;
	ct_key(&connection, p, SERVICE, false);
	state = bpf_map_lookup_elem(ct_map(p), &connection);
	if (state && state->index == svc->index && !reused(state, p)) {
		ct_touch(skb, state, p, SERVICE);
		number = state->backend;
	} else {
		number = select_backend(&key, svc);
		if (!number || ct_create(skb, p, SERVICE, svc->index, number, 0) < 0)
			return false;
	}
	backend = bpf_map_lookup_elem(&backends, &number);
	if (!backend)
		return false;
	*index = svc->index;
	return translate(skb, p, false, backend->addr, backend->port);
}

/* from_container is what a pod sends (bpf/bpf_lxc.c, cil_from_container). */
SEC("tc")
int from_container(struct __sk_buff *skb)
{
	__u64 node_mac = endpoint_node_mac;
	struct connection_state *state;
	struct bpf_tunnel_key tunnel = {};
	struct endpoint *local;
	struct remote *remote;
	struct packet p;
	__u32 identity = WORLD;
	__be32 tunnel_endpoint = 0;
	__u32 index = 0;
	bool report;
	int status;

	if (skb->protocol == bpf_htons(ETH_P_ARP))
		return answer_arp(skb, (struct mac *)&node_mac);
	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_SHOT; /* IPv6 is off */
	trace(skb, FROM_LXC, endpoint_identity, 0, 0, true);
	if (!parse(skb, &p) || p.saddr != endpoint_addr)
		return TC_ACT_SHOT;
	if (per_packet_lb && !balance(skb, &p, &index))
		return TC_ACT_SHOT;
	status = ct_lookup(skb, &p, EGRESS, &state, &report);
	remote = remote_of(p.daddr);
	if (remote) {
		identity = remote->identity;
		tunnel_endpoint = remote->tunnel_endpoint;
	}
	if (status != CT_REPLY && !allowed(skb, &p, true, identity))
		return TC_ACT_SHOT;
	if (status == CT_NEW || (status == CT_ESTABLISHED && state->index != index)) {
		if (ct_create(skb, &p, EGRESS, index, 0, endpoint_identity) < 0)
			return TC_ACT_SHOT;
	}
	local = bpf_map_lookup_elem(&endpoints, &p.daddr);
	if (local && !local->host)
		return deliver(skb, local, endpoint_identity, false);
	if (!local && tunnel_mode && tunnel_endpoint) {
		trace(skb, TO_OVERLAY, endpoint_identity, identity, status, report);
		tunnel.tunnel_id = endpoint_identity;
		tunnel.remote_ipv4 = bpf_ntohl(tunnel_endpoint);
		if (bpf_skb_set_tunnel_key(skb, &tunnel, offset_of(struct bpf_tunnel_key, local_ipv4), BPF_F_ZERO_CSUM_TX) < 0)
			return TC_ACT_SHOT;
		return bpf_redirect(tunnel_device, 0);
	}
	if (!local && host_routing) {
		trace(skb, TO_NETWORK, endpoint_identity, identity, status, report);
		if (!hop(skb, 0, 0))
			return TC_ACT_SHOT;
		/* With one device Cilium asks for no route: the kernel finds the
		 * next hop (ENABLE_SKIP_FIB in bpf/lib/fib.h). */
		return bpf_redirect_neigh(uplink, 0, 0, 0);
	}
	trace(skb, TO_STACK, endpoint_identity, identity, status, report);
	return TC_ACT_OK;
}

/* admit lets a packet into the pod, or not (bpf/bpf_lxc.c, ipv4_policy). */
__inline_always bool admit(struct __sk_buff *skb, __u32 identity)
{
	struct connection_state *state;
	struct address *service;
	struct packet p;
	__u32 index;
	bool report;
	int status;

	if (!parse(skb, &p))
		return false;
	status = ct_lookup(skb, &p, INGRESS, &state, &report);
	if (status == CT_REPLY) {
		index = state->index;
		if (index) {
			service = bpf_map_lookup_elem(&reverse, &index);
			if (service && !translate(skb, &p, true, service->addr, service->port))
				return false;
		}
	} else if (!allowed(skb, &p, false, identity)) {
		return false;
	}
	if (status == CT_NEW && ct_create(skb, &p, INGRESS, 0, 0, identity) < 0)
		return false;
	trace(skb, TO_LXC, identity, endpoint_identity, status, report);
	return true;
}

/* to_container is called by the program that found the pod, on this packet
 * (tail_ipv4_policy). */
SEC("tc")
int to_container(struct __sk_buff *skb)
{
	__u32 identity = skb->cb[CB_IDENTITY], ifindex = skb->cb[CB_IFINDEX];
	bool from_tunnel = skb->cb[CB_FROM_TUNNEL];

	if (!admit(skb, identity))
		return TC_ACT_SHOT;
	skb->tc_index = ADMITTED;
	if (!host_routing || !skb->ingress_ifindex)
		return bpf_redirect(ifindex, 0);
	if (from_tunnel)
		bpf_skb_change_type(skb, 0 /* PACKET_HOST */);
	return bpf_redirect_peer(ifindex, 0);
}

/* from_stack is what the node's stack sends to the pod (cil_to_container):
 * everything from other nodes, where neither the tunnel nor the uplink has a
 * program that finds pods. */
SEC("tc")
int from_stack(struct __sk_buff *skb)
{
	struct remote *remote;
	struct iphdr *ip;

	if (skb->tc_index == ADMITTED || skb->protocol != bpf_htons(ETH_P_IP)) {
		skb->tc_index = 0;
		return TC_ACT_OK;
	}
	ip = ipv4(skb);
	remote = ip ? remote_of(ip->saddr) : 0;
	return admit(skb, remote ? remote->identity : WORLD) ? TC_ACT_OK : TC_ACT_SHOT;
}

/* node_port_in looks for the Service that a packet from outside is for, or the
 * node port whose backend replies. In Cilium the latter and what follows are
 * two more programs, by tail calls (bpf/lib/nodeport.h, nodeport_lb4 and
 * tail_nodeport_nat_ingress_ipv4). */
__inline_always void node_port_in(const struct packet *p)
{
	enum { LAST_NODE_PORT = 32767 };
	struct connection key = {};
	struct service_key service;

	if (!p->sport || service_of(&service, p->daddr, p->dport, p->proto) || bpf_ntohs(p->dport) <= LAST_NODE_PORT)
		return;
	ct_key(&key, p, INGRESS, false);
	bpf_map_lookup_elem(&snat, &key);
}

/* node_port_out looks whether a packet that leaves is a node port's reply, and
 * at the uplink whether it is to be masqueraded; in Cilium the latter after a
 * tail call (bpf/lib/nodeport.h, handle_nat_fwd; bpf/lib/nat.h,
 * snat_v4_needs_masquerade). */
__inline_always void node_port_out(const struct packet *p, bool at_uplink)
{
	struct connection key = {};
	struct endpoint *own;
	__be32 from = p->saddr;

	if (p->sport) {
		ct_key(&key, p, NODE_PORT, true);
		bpf_map_lookup_elem(ct_map(p), &key);
	}
	if (!masquerade || !at_uplink)
		return;
	own = bpf_map_lookup_elem(&endpoints, &from);
	remote_of(p->daddr);
	if (!own)
		return;
	ct_key(&key, p, INGRESS, true);
	bpf_map_lookup_elem(ct_map(p), &key);
}

/* from_overlay is what the tunnel brings (bpf/bpf_overlay.c). */
SEC("tc")
int from_overlay(struct __sk_buff *skb)
{
	struct bpf_tunnel_key tunnel = {};
	struct endpoint *local;
	struct packet p;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	if (bpf_skb_get_tunnel_key(skb, &tunnel, offset_of(struct bpf_tunnel_key, local_ipv4), 0) < 0)
		return TC_ACT_SHOT;
	trace(skb, FROM_OVERLAY, tunnel.tunnel_id, 0, 0, true);
	if (!parse(skb, &p))
		return TC_ACT_SHOT;
	if (node_port)
		node_port_in(&p);
	remote_of(p.saddr);
	local = bpf_map_lookup_elem(&endpoints, &p.daddr);
	if (local && !local->host)
		return deliver(skb, local, tunnel.tunnel_id, true);
	return TC_ACT_OK;
}

/* to_overlay is what goes into the tunnel (bpf/bpf_overlay.c,
 * cil_to_overlay). */
SEC("tc")
int to_overlay(struct __sk_buff *skb)
{
	struct packet p;

	if (!node_port || skb->protocol != bpf_htons(ETH_P_IP) || !parse(skb, &p))
		return TC_ACT_OK;
	node_port_out(&p, false);
	trace(skb, TO_OVERLAY, 0, 0, 0, false);
	return TC_ACT_OK;
}

/* from_netdev is what the uplink brings (bpf/bpf_host.c, cil_from_netdev). */
SEC("tc")
int from_netdev(struct __sk_buff *skb)
{
	struct endpoint *local;
	struct remote *remote;
	struct packet p;
	__u32 identity = WORLD;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return TC_ACT_OK;
	trace(skb, FROM_NETWORK, 0, 0, 0, true);
	if (!parse(skb, &p))
		return TC_ACT_OK;
	if (node_port)
		node_port_in(&p);
	remote = remote_of(p.saddr);
	if (remote)
		identity = remote->identity;
	if (!host_routing)
		return TC_ACT_OK;
	local = bpf_map_lookup_elem(&endpoints, &p.daddr);
	if (local && !local->host)
		return deliver(skb, local, identity, false);
	return TC_ACT_OK;
}

/* to_netdev is what leaves the node (bpf/bpf_host.c, cil_to_netdev): the
 * tunnel's packets are sent to be encrypted. It knows no connections, so with
 * aggregation nothing here is worth a report. */
SEC("tc")
int to_netdev(struct __sk_buff *skb)
{
	struct packet p;

	if (skb->protocol != bpf_htons(ETH_P_IP) || !parse(skb, &p))
		return TC_ACT_OK;
	/* The tunnel's packets are encrypted, once (bpf/lib/wireguard.h). */
	if (wireguard && p.proto == IPPROTO_UDP && p.dport == tunnel_port && (skb->mark & ENCRYPTED) != ENCRYPTED)
		return bpf_redirect(wireguard, 0);
	if (node_port)
		node_port_out(&p, true);
	trace(skb, TO_NETWORK, 0, 0, 0, false);
	return TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
