/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * A program that every verifier refuses: it reads a packet without asking
 * where the packet ends.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int harmless(struct __sk_buff *skb)
{
	return 0;
}

SEC("tc")
int reads_too_far(struct __sk_buff *skb)
{
	return *((char *)(long)skb->data + 40);
}

char _license[] SEC("license") = "GPL";
