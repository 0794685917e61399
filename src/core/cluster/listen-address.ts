// How a listen address is written: `host:port`, an IPv6 host in brackets.

export interface ListenAddress {
  /** An IP address or a host name; IPv6 without brackets. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
}

/** The address, or what is wrong with the text. */
export function parseListenAddress(text: string): ListenAddress | { readonly error: string } {
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

/** `host:port`, as `parseListenAddress` reads it. */
export function formatListenAddress(address: ListenAddress): string {
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`
}

/** Whether only this machine reaches it. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}
