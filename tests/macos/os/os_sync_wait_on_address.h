/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef enum { OS_SYNC_WAIT_ON_ADDRESS_NONE = 0 } os_sync_wait_on_address_flags_t;

typedef enum { OS_SYNC_WAKE_BY_ADDRESS_NONE = 0 } os_sync_wake_by_address_flags_t;

int os_sync_wait_on_address(void *at, uint64_t value, size_t nbytes, os_sync_wait_on_address_flags_t flags);
int os_sync_wake_by_address_all(void *at, size_t nbytes, os_sync_wake_by_address_flags_t flags);
