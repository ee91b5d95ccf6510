// SPDX-License-Identifier: Apache-2.0
module mlkemd.test/tlspeer

go 1.24
