// Listening sockets opened by the parent process: socket activation as in sd_listen_fds(3), or plain numbers. Each may be taken once: two listeners
// on one file descriptor would close it under each other.

import process from 'node:process'
import { UserError } from '../../api/validation/field-errors.ts'
import { formatListenAddress, type InheritedSocket, type ListenAddress } from '../../core/listen-address.ts'

/** SD_LISTEN_FDS_START */
const FIRST_FD = 3
/** Name of unnamed sockets (sd_listen_fds_with_names(3)). */
const UNKNOWN = 'unknown'

/** File descriptor -> where it is used. */
const taken = new Map<number, string>()

/** The protocol's variables, and the process they must refer to. */
interface SocketEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly pid: number
}

/**
 * The file descriptors of an address with `inherited`, owned by the caller from now on.
 * @param flag that set the address
 * @throws {UserError} if there are none, or one is already taken
 */
export function takeInherited(
  address: ListenAddress,
  flag: string,
  from: SocketEnvironment = process,
): readonly number[] {
  const text = formatListenAddress(address)
  const fds = findInherited(address, flag, from)
  for (const fd of fds) {
    const user = taken.get(fd)
    if (user !== undefined) throw new UserError(`${flag} ${text}: ${user} is the same socket`, 'give each its own')
  }
  for (const fd of fds) taken.set(fd, `${flag} ${text}`)
  return fds
}

/** Like takeInherited(), but leaves them available. */
export function findInherited(
  address: ListenAddress,
  flag: string,
  from: SocketEnvironment = process,
): readonly number[] {
  const { inherited } = address
  return inherited === undefined ? [] : descriptorsOf(inherited, `${flag} ${formatListenAddress(address)}`, from)
}

function descriptorsOf(inherited: InheritedSocket, at: string, { env, pid }: SocketEnvironment): readonly number[] {
  if ('fd' in inherited) return [inherited.fd]
  const { LISTEN_FDS: count = '', LISTEN_PID: meant = '', LISTEN_FDNAMES: names } = env
  if (!/^[1-9]\d{0,4}$/.test(count)) {
    throw new UserError(
      `${at}: this process was given no sockets (LISTEN_FDS is ${count === '' ? 'not set' : `"${count}"`})`,
      'start it from a .socket unit, or by systemd-socket-activate',
    )
  }
  if (meant !== String(pid)) {
    throw new UserError(
      `${at}: the sockets are meant for process ${meant === '' ? '""' : meant} (LISTEN_PID), and this is ${pid}`,
      'a script between systemd and the gateway must exec it',
    )
  }
  const given = names === undefined ? [] : names.split(':')
  const all = Array.from({ length: Number(count) }, (_, i) => given[i] ?? UNKNOWN)
  const found = all.flatMap((name, i) => (name === inherited.name ? [FIRST_FD + i] : []))
  if (found.length > 0) return found
  throw new UserError(
    `${at}: no socket has this name; the names are ${[...new Set(all)].join(', ')}`,
    `write one of them, or FileDescriptorName=${inherited.name} into the .socket unit`,
  )
}
