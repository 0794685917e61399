// Syntax of a listen address: `host:port`, an IPv6 host in brackets; or a socket that the process inherits, `systemd:NAME`, `fd:N`.

export interface ListenAddress {
  /** An IP address or a host name; IPv6 without brackets. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  /** A listening socket inherited from the parent process; host is '' and port 0 then. Default: our own. */
  readonly inherited?: InheritedSocket
  /** Connections begin with a PROXY protocol header. Only for client listeners. */
  readonly proxyProtocol?: true
}

/** By its name in LISTEN_FDNAMES (sd_listen_fds(3)), or by its number. */
export type InheritedSocket = { readonly name: string } | { readonly fd: number }

/** Below are stdin, stdout and stderr. */
const FIRST_FD = 3
const LAST_FD = 65_535
/** A subset of what systemd.socket(5) allows: without the separators of lists and of an entry's options. */
const SOCKET_NAME = /^[\w.@-]{1,255}$/

const PROXY_PROTOCOL = '/proxy-protocol'

/** The address, or what is wrong with the text. */
export function parseListenAddress(text: string): ListenAddress | { readonly error: string } {
  if (text.startsWith('fd:') || text.startsWith('systemd:')) {
    return { error: 'is an inherited socket, which this listener cannot have' }
  }
  if (text.endsWith(PROXY_PROTOCOL)) return { error: `has ${PROXY_PROTOCOL}, which is for --listen alone` }
  const colon = text.lastIndexOf(':')
  if (colon < 0) return { error: 'has no port' }
  const digits = text.slice(colon + 1)
  if (!/^\d{1,5}$/.test(digits) || Number(digits) > 65_535) return { error: 'has a port that is not 0 to 65535' }
  const host = text.slice(0, colon)
  if (host === '') return { error: 'has no host; 0.0.0.0 or [::] means every address' }
  const bracketed = /^\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]$/.exec(host)
  if (bracketed?.[1] !== undefined) return { host: bracketed[1], port: Number(digits) }
  if (host.includes(':')) return { error: 'has an IPv6 address without brackets' }
  if (!/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(host))
    return { error: 'has a host that is neither an address nor a name' }
  return { host, port: Number(digits) }
}

/** Also `systemd:NAME`, every socket of that name, and `fd:N`. */
export function parseSocketAddress(text: string): ListenAddress | { readonly error: string } {
  if (text.endsWith(PROXY_PROTOCOL)) return { error: `has ${PROXY_PROTOCOL}, which is for --listen alone` }
  if (text.startsWith('fd:')) {
    const fd = /^\d{1,5}$/.test(text.slice(3)) ? Number(text.slice(3)) : 0
    if (fd < FIRST_FD || fd > LAST_FD) return { error: `has a file descriptor that is not ${FIRST_FD} to ${LAST_FD}` }
    return { host: '', port: 0, inherited: { fd } }
  }
  if (!text.startsWith('systemd:')) return parseListenAddress(text)
  const name = text.slice('systemd:'.length)
  if (!SOCKET_NAME.test(name)) return { error: 'names no socket as FileDescriptorName= does: letters, digits, "_.@-"' }
  return { host: '', port: 0, inherited: { name } }
}

/** As `parseSocketAddress`, optionally followed by `/proxy-protocol`; otherwise what is wrong with the text. */
export function parseClientListenAddress(text: string): ListenAddress | { readonly error: string } {
  const slash = text.indexOf('/')
  if (slash < 0) return parseSocketAddress(text)
  const option = text.slice(slash)
  if (option !== PROXY_PROTOCOL) return { error: `has an unknown option; the only one is ${PROXY_PROTOCOL}` }
  const address = parseSocketAddress(text.slice(0, slash))
  return 'error' in address ? address : { ...address, proxyProtocol: true }
}

/** `host:port`, `systemd:NAME` or `fd:N`, as `parseSocketAddress` reads it. */
export function formatListenAddress(address: ListenAddress): string {
  const { inherited } = address
  if (inherited !== undefined) return 'fd' in inherited ? `fd:${inherited.fd}` : `systemd:${inherited.name}`
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`
}

/** Whether it is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
