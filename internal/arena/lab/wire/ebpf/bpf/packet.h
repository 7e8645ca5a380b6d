/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What every datapath of this folder needs of a packet: addresses and ports,
 * fragments, answers to ARP, address translation with its checksums.
 */
#pragma once

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define __inline_always static __always_inline
#define offset_of(type, member) __builtin_offsetof(type, member)

#ifndef ETHERNET
#define ETHERNET 14 /* bytes of the Ethernet header, where IPv4 begins */
#endif
#define FRAGMENT_OFFSET 0x1fff
#define MORE_FRAGMENTS 0x2000

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

struct mac {
	__u8 addr[ETH_ALEN];
};

/* packet is what the datapath looks at. */
struct packet {
	__be32 saddr, daddr;
	__be16 sport, dport; /* 0 where the protocol has none */
	__u16 l4;            /* offset of the transport header */
	__u8 proto;
	__u8 tcp_flags;
	bool ports_here; /* false in a fragment after the first */
};

struct fragment {
	__be32 saddr, daddr;
	__be16 id;
	__u8 proto;
	__u8 pad;
};

struct ports {
	__be16 sport, dport;
};

/* Fragments after the first carry no ports: theirs are remembered. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct fragment);
	__type(value, struct ports);
} fragments SEC(".maps");

/* ipv4 is the header, or 0 when the packet has none. */
__inline_always struct iphdr *ipv4(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;

	if (data + ETHERNET + sizeof(struct iphdr) <= (void *)(long)skb->data_end)
		return data + ETHERNET;
	if (bpf_skb_pull_data(skb, ETHERNET + sizeof(struct iphdr)) < 0)
		return 0;
	data = (void *)(long)skb->data;
	if (data + ETHERNET + sizeof(struct iphdr) > (void *)(long)skb->data_end)
		return 0;
	return data + ETHERNET;
}

/* parse reads the packet; false is one that is damaged. */
__inline_always bool parse(struct __sk_buff *skb, struct packet *p)
{
	struct iphdr *ip = ipv4(skb);
	struct fragment part = {};
	struct ports ports = {};
	struct ports *known;
	__u16 where;

	if (!ip || ip->ihl < 5)
		return false;
	p->saddr = ip->saddr;
	p->daddr = ip->daddr;
	p->proto = ip->protocol;
	p->l4 = ETHERNET + ip->ihl * 4;
	p->tcp_flags = 0;
	p->sport = p->dport = 0;
	p->ports_here = true;
	if (p->proto != IPPROTO_TCP && p->proto != IPPROTO_UDP) {
		p->ports_here = false;
		return true;
	}
	where = bpf_ntohs(ip->frag_off);
	if (where & (FRAGMENT_OFFSET | MORE_FRAGMENTS)) {
		part.saddr = ip->saddr;
		part.daddr = ip->daddr;
		part.id = ip->id;
		part.proto = ip->protocol;
	}
	if (where & FRAGMENT_OFFSET) {
		known = bpf_map_lookup_elem(&fragments, &part);
		if (!known)
			return false;
		p->sport = known->sport;
		p->dport = known->dport;
		p->ports_here = false;
		return true;
	}
	if (bpf_skb_load_bytes(skb, p->l4, &ports, sizeof(ports)) < 0)
		return false;
	p->sport = ports.sport;
	p->dport = ports.dport;
	if (where & MORE_FRAGMENTS)
		bpf_map_update_elem(&fragments, &part, &ports, BPF_ANY);
	if (p->proto == IPPROTO_TCP && bpf_skb_load_bytes(skb, p->l4 + 13, &p->tcp_flags, 1) < 0)
		return false;
	return true;
}

/* checksum_at is where the transport's checksum is, 0 for none. */
__inline_always __u16 checksum_at(const struct packet *p)
{
	if (!p->ports_here)
		return 0;
	return p->l4 + (p->proto == IPPROTO_TCP ? 16 : 6);
}

/* translate writes another address and port; source says which side. */
__inline_always bool translate(struct __sk_buff *skb, struct packet *p, bool source, __be32 addr, __be16 port)
{
	__u32 ip_at = ETHERNET + (source ? offset_of(struct iphdr, saddr) : offset_of(struct iphdr, daddr));
	__u64 mangled = p->proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
	__be32 old = source ? p->saddr : p->daddr;
	__be16 old_port = source ? p->sport : p->dport;
	__u16 sum = checksum_at(p);

	if (bpf_skb_store_bytes(skb, ip_at, &addr, sizeof(addr), 0) < 0)
		return false;
	if (bpf_l3_csum_replace(skb, ETHERNET + offset_of(struct iphdr, check), old, addr, sizeof(addr)) < 0)
		return false;
	if (sum) {
		if (bpf_l4_csum_replace(skb, sum, old, addr, BPF_F_PSEUDO_HDR | mangled | sizeof(addr)) < 0)
			return false;
		if (port != old_port) {
			if (bpf_l4_csum_replace(skb, sum, old_port, port, mangled | sizeof(port)) < 0)
				return false;
			if (bpf_skb_store_bytes(skb, p->l4 + (source ? 0 : 2), &port, sizeof(port), 0) < 0)
				return false;
		}
	}
	if (source) {
		p->saddr = addr;
		p->sport = port;
	} else {
		p->daddr = addr;
		p->dport = port;
	}
	return true;
}

/* hop counts the packet's time to live down and gives it a new Ethernet
 * header; false is a packet that has lived too long. */
__inline_always bool hop(struct __sk_buff *skb, const struct mac *from, const struct mac *to)
{
	struct iphdr *ip = ipv4(skb);
	struct ethhdr *eth;
	__u32 sum;

	if (!ip || ip->ttl <= 1)
		return false;
	/* RFC 1624, as ip_decrease_ttl() does it. */
	sum = ip->check;
	sum += bpf_htons(0x0100);
	ip->check = (__sum16)(sum + (sum >= 0xffff));
	ip->ttl--;
	eth = (void *)(long)skb->data;
	if (from)
		__builtin_memcpy(eth->h_source, from, ETH_ALEN);
	if (to)
		__builtin_memcpy(eth->h_dest, to, ETH_ALEN);
	return true;
}

struct arp {
	__be16 hardware, protocol;
	__u8 hardware_length, protocol_length;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__u8 sender[4];
	__u8 target_mac[ETH_ALEN];
	__u8 target[4];
} __attribute__((packed));

/* answer_arp answers every question with the interface's own address. */
__inline_always int answer_arp(struct __sk_buff *skb, const struct mac *own)
{
	struct ethhdr *eth;
	struct arp *arp;
	__u8 asked[4];

	if (bpf_skb_pull_data(skb, ETHERNET + sizeof(*arp)) < 0)
		return TC_ACT_SHOT;
	eth = (void *)(long)skb->data;
	arp = (void *)eth + ETHERNET;
	if ((void *)arp + sizeof(*arp) > (void *)(long)skb->data_end)
		return TC_ACT_SHOT;
	if (arp->operation != bpf_htons(1))
		return TC_ACT_SHOT;
	__builtin_memcpy(asked, arp->target, 4);
	arp->operation = bpf_htons(2);
	__builtin_memcpy(arp->target_mac, arp->sender_mac, ETH_ALEN);
	__builtin_memcpy(arp->target, arp->sender, 4);
	__builtin_memcpy(arp->sender_mac, own, ETH_ALEN);
	__builtin_memcpy(arp->sender, asked, 4);
	__builtin_memcpy(eth->h_dest, arp->target_mac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, own, ETH_ALEN);
	return bpf_redirect(skb->ifindex, 0);
}

/* route asks the node's routes for the way and sends the packet there. */
__inline_always int route(struct __sk_buff *skb, const struct packet *p)
{
	struct bpf_fib_lookup fib = {};
	struct bpf_redir_neigh next = {};
	long found;

	fib.family = 2; /* AF_INET */
	fib.ifindex = skb->ingress_ifindex ? skb->ingress_ifindex : skb->ifindex;
	fib.l4_protocol = p->proto;
	fib.sport = p->sport;
	fib.dport = p->dport;
	fib.ipv4_src = p->saddr;
	fib.ipv4_dst = p->daddr;
	found = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	if (found == BPF_FIB_LKUP_RET_NO_NEIGH) {
		if (!hop(skb, 0, 0))
			return TC_ACT_SHOT;
		next.nh_family = fib.family;
		next.ipv4_nh = fib.ipv4_dst;
		return bpf_redirect_neigh(fib.ifindex, &next, sizeof(next), 0);
	}
	if (found != BPF_FIB_LKUP_RET_SUCCESS)
		return TC_ACT_OK; /* the node's own stack decides */
	if (!hop(skb, (struct mac *)fib.smac, (struct mac *)fib.dmac))
		return TC_ACT_SHOT;
	return bpf_redirect(fib.ifindex, 0);
}
