/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Calico's programs for devices whose packets have no Ethernet header, such as
 * WireGuard's (felix/bpf-gpl/bpf.h, CALI_F_L3_DEV).
 */
#define ETHERNET 0
#include "calico.c"
