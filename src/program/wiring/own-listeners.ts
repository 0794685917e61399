// Addresses of all listeners of the process, by which its own connections recognise them.

import { type ListenAddress, parseSocketAddress } from '../../kit/core/listen-address.ts'
import type { Config } from '../../process/config/config.ts'

/** Ports that are not in the configuration: it contains 0, or an inherited socket. 0 = not open yet. */
export interface OpenPorts {
  /** In the order of `--listen`. */
  readonly listen: readonly number[]
  readonly admin: number
  readonly health: number
  readonly control: number
  readonly webhook: number
}

/** Before any of them is open. */
export const CLOSED: OpenPorts = { listen: [], admin: 0, health: 0, control: 0, webhook: 0 }

export function ownListeners(config: Config, open: OpenPorts): readonly ListenAddress[] {
  const { source, listen, adminListen, healthListen, controlListen, protection } = config
  const others: [ListenAddress | undefined, number][] = [
    [read(adminListen), open.admin],
    [healthListen, open.health],
    [source === 'files' ? undefined : controlListen, open.control],
    [read(protection.listen ?? ''), open.webhook],
  ]
  const all = [...listen.map((address, at): [ListenAddress, number] => [address, open.listen[at] ?? 0]), ...others]
  return all.flatMap(([address, port]) => {
    return address === undefined ? [] : [{ host: address.host, port: address.port || port }]
  })
}

function read(text: string): ListenAddress | undefined {
  const address = parseSocketAddress(text)
  return 'error' in address ? undefined : address
}
