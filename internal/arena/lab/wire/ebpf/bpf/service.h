/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Services as Cilium keeps them: a service with the count of its backends,
 * under the same key with slot 1, 2, … the backend of each, the backends by
 * number, and the service's own address by its number for replies
 * (bpf/lib/common.h and lb.h of cilium/cilium v1.15.2).
 */
#pragma once

#include "packet.h"

struct service_key {
	__be32 addr;
	__be16 port;
	__u16 slot;
	__u8 proto;
	__u8 pad[3];
};

struct service {
	__u32 backend; /* number, of a slot */
	__u32 count;   /* of backends, of slot 0 */
	__u32 index;   /* for replies */
};

struct address {
	__be32 addr;
	__be16 port;
	__u16 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 262144);
	__type(key, struct service_key);
	__type(value, struct service);
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, __u32);
	__type(value, struct address);
} backends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, __u32);
	__type(value, struct address);
} reverse SEC(".maps");

__inline_always struct service *service_of(struct service_key *key, __be32 addr, __be16 port, __u8 proto)
{
	__builtin_memset(key, 0, sizeof(*key));
	key->addr = addr;
	key->port = port;
	key->proto = proto;
	return bpf_map_lookup_elem(&services, key);
}

/* select_backend takes one by chance, the default of bpf-lb-algorithm. */
__inline_always __u32 select_backend(struct service_key *key, const struct service *svc)
{
	struct service *slot;

	if (!svc->count)
		return 0;
	key->slot = bpf_get_prandom_u32() % svc->count + 1;
	slot = bpf_map_lookup_elem(&services, key);
	return slot ? slot->backend : 0;
}
