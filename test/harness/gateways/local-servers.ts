// Servers of clusters in tests are on this machine.

export const LOOPBACK_SERVERS = ['127.0.0.0/8', '::1'] as const

/** Flags of `serve`. */
export const LOCAL_SERVERS_FLAG: string = `--allow-local-servers=${LOOPBACK_SERVERS.join(',')}`
