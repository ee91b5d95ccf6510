/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * wipe.h: what others leave behind on our stack. libcrypto spills secrets (a drawn key,
 * an X25519 result, an HKDF key) into frames below those of its caller and wipes only
 * some of them. Inside kem/ only.
 */
#ifndef MLKEMD_KEM_WIPE_H
#define MLKEMD_KEM_WIPE_H

/*
 * Overwrites the 6 KiB of stack below the caller's frame: the deepest call of libcrypto
 * in kem/ (an X25519 derivation with OpenSSL 3.0) takes 5.4 KiB, and kem/ may use 8.
 */
void libcrypto_stack_wipe(void);

#endif
