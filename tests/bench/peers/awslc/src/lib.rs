// SPDX-License-Identifier: Apache-2.0
//! Empty: what is wanted is what build.rs builds.
