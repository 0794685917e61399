// On whose behalf the gateway makes a call of its own: calls are divided among these sources. Also named in answers.

/** For a client whose identity is not verified: its network, because one client can easily have all addresses of it. */
export function addressSource(remoteAddress: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remoteAddress)
  if (mapped?.[1] !== undefined) return `address ${mapped[1]}`
  return remoteAddress.includes(':') ? `network ${network64(remoteAddress)}` : `address ${remoteAddress}`
}

/** The same name is somebody else in another cluster, whose CAs and tokens are its own. */
export function userSource(cluster: string, name: string): string {
  return `user ${JSON.stringify(name)} of cluster "${cluster}"`
}

/** The first four groups of an IPv6 address: a host may have any address behind them (RFC 4291 section 2.5.4). */
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
