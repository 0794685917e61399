// Names the source on whose behalf the gateway makes a call of its own. Calls are divided among sources; refusals name them.

/** For an unauthenticated client: its network, because one client can easily own every address in it. */
export function addressSource(remoteAddress: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remoteAddress)
  if (mapped?.[1] !== undefined) return `address ${mapped[1]}`
  return remoteAddress.includes(':') ? `network ${network64(remoteAddress)}` : `address ${remoteAddress}`
}

/** The cluster is part of the key: another cluster has its own CAs and tokens, so the same name there is a different user. */
export function userSource(cluster: string, name: string): string {
  return `user ${JSON.stringify(name)} of cluster "${cluster}"`
}

/** The first four groups of an IPv6 address: one host may use any address below them (RFC 4291 section 2.5.4). */
function network64(address: string): string {
  const [front = '', back] = (address.split('%', 1)[0] ?? '').split('::')
  const groups = front === '' ? [] : front.split(':')
  if (back !== undefined) {
    const behind = back === '' ? 0 : back.split(':').length
    while (groups.length + behind < 8) groups.push('0')
    if (back !== '') groups.push(...back.split(':'))
  }
  const first = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${first.join(':')}::/64`
}
