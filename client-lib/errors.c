/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/client.h"

const char *
mlkemclient_strerror(int error)
{
	switch (error) {
	case 0:
		return "done";
	case MLKEMCLIENT_E_INVALID:
		return "an argument is out of its range";
	case MLKEMCLIENT_E_LENGTH:
		return "a share, ciphertext or key has another length";
	case MLKEMCLIENT_E_BAD_SHARE:
		return "the public share failed the modulus check (FIPS 203 7.2)";
	case MLKEMCLIENT_E_BAD_KEY:
		return "the private key failed the hash check (FIPS 203 7.3)";
	case MLKEMCLIENT_E_ALGORITHM:
		return "a key of one algorithm was used with another";
	case MLKEMCLIENT_E_ZERO_X25519:
		return "the X25519 result is all zero (RFC 10024 4.2)";
	case MLKEMCLIENT_E_KEY_GONE:
		return "the key was used, expired or released, or its daemon ended";
	case MLKEMCLIENT_E_DENIED:
		return "the daemon does not serve this user";
	case MLKEMCLIENT_E_NO_EXPORT:
		return "the daemon's configuration does not allow key export";
	case MLKEMCLIENT_E_TIMEOUT:
		return "the deadline passed";
	case MLKEMCLIENT_E_UNAVAILABLE:
		return "no daemon answers";
	case MLKEMCLIENT_E_EXHAUSTED:
		return "the daemon is at a limit: try later, or elsewhere";
	case MLKEMCLIENT_E_DRAINING:
		return "the daemon takes no new operations";
	case MLKEMCLIENT_E_IMPOSTOR:
		return "the socket belongs to a user that is not trusted as the daemon";
	case MLKEMCLIENT_E_PROTOCOL:
		return "the peer does not speak this protocol";
	case MLKEMCLIENT_E_UNSUPPORTED:
		return "the daemon does not have this version or algorithm";
	case MLKEMCLIENT_E_INTERNAL:
		return "randomness, memory or a library failed";
	default:
		return "unknown error";
	}
}

/*
 * A status that this version does not know is judged by its tens, as docs/protocol.md
 * promises: 50 to 59 pass with time, 60 to 69 are failures of the daemon.
 */
static int
error_from_unknown(uint32_t wire_status)
{
	if (wire_status >= 50 && wire_status <= 59)
		return MLKEMCLIENT_E_EXHAUSTED;
	if (wire_status >= 60 && wire_status <= 69)
		return MLKEMCLIENT_E_INTERNAL;
	return MLKEMCLIENT_E_UNSUPPORTED;
}

/* The numbers are those of enum Status in mlkemd.proto; message_encode.c asserts it. */
int
error_from_status(uint32_t wire_status)
{
	switch (wire_status) {
	case 0:
		return 0;
	case 10: /* INVALID_REQUEST */
	case 12: /* TOO_MANY_ITEMS */
		return MLKEMCLIENT_E_INVALID;
	case 11:
		return MLKEMCLIENT_E_UNSUPPORTED;
	case 20:
		return MLKEMCLIENT_E_DENIED;
	case 21:
		return MLKEMCLIENT_E_NO_EXPORT;
	case 30:
		return MLKEMCLIENT_E_LENGTH;
	case 31:
		return MLKEMCLIENT_E_BAD_SHARE;
	case 32:
		return MLKEMCLIENT_E_BAD_KEY;
	case 33:
		return MLKEMCLIENT_E_ALGORITHM;
	case 34:
		return MLKEMCLIENT_E_ZERO_X25519;
	case 40:
		return MLKEMCLIENT_E_KEY_GONE;
	case 50:
		return MLKEMCLIENT_E_EXHAUSTED;
	case 51: /* DEADLINE_EXCEEDED */
	case 53: /* CANCELLED: this library cancels nothing but what timed out */
		return MLKEMCLIENT_E_TIMEOUT;
	case 52:
		return MLKEMCLIENT_E_DRAINING;
	case 60:
		return MLKEMCLIENT_E_INTERNAL;
	default:
		return error_from_unknown(wire_status);
	}
}

int
error_from_kem(enum kem_status status)
{
	switch (status) {
	case KEM_OK:
		return 0;
	case KEM_E_LENGTH:
		return MLKEMCLIENT_E_LENGTH;
	case KEM_E_ALG:
		return MLKEMCLIENT_E_ALGORITHM;
	case KEM_E_SHARE:
		return MLKEMCLIENT_E_BAD_SHARE;
	case KEM_E_KEY:
		return MLKEMCLIENT_E_BAD_KEY;
	case KEM_E_ZERO:
		return MLKEMCLIENT_E_ZERO_X25519;
	case KEM_E_INTERNAL:
	case KEM_N_STATUS:
		break;
	}
	return MLKEMCLIENT_E_INTERNAL;
}

/* Faults of the input are the same everywhere; faults of the way are not. */
bool
error_is_elsewhere(int error)
{
	switch (error) {
	case MLKEMCLIENT_E_DENIED:
	case MLKEMCLIENT_E_TIMEOUT:
	case MLKEMCLIENT_E_UNAVAILABLE:
	case MLKEMCLIENT_E_EXHAUSTED:
	case MLKEMCLIENT_E_DRAINING:
	case MLKEMCLIENT_E_IMPOSTOR:
	case MLKEMCLIENT_E_PROTOCOL:
	case MLKEMCLIENT_E_UNSUPPORTED:
	case MLKEMCLIENT_E_INTERNAL:
		return true;
	default:
		return false;
	}
}
