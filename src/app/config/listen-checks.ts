// Addresses that the process listens on: all different.

import { formatListenAddress, type ListenAddress } from '../../core/cluster/listen-address.ts'
import { addProblem } from './setting-problems.ts'
import type { Setting } from './setting-rows.ts'
import type { SettingsReader } from './settings-reader.ts'

interface Listener {
  readonly setting: Setting
  /** undefined = not opened, or invalid, which was already reported. */
  readonly address: ListenAddress | undefined
}

export interface Listeners {
  readonly listen: { readonly setting: Setting; readonly addresses: readonly ListenAddress[] }
  readonly admin: Listener
  readonly others: readonly Listener[]
}

export function checkListeners({ listen, admin, others }: Listeners, reader: SettingsReader): void {
  const problem = (at: Setting, message: string): void => {
    addProblem(reader, at, message, 'give it a port of its own')
  }
  const seen = new Set<string>()
  for (const address of listen.addresses) {
    const text = formatListenAddress(address)
    if ((address.port !== 0 || address.inherited !== undefined) && seen.has(text)) {
      addProblem(reader, listen.setting, `${text} is given twice`, 'remove one')
    }
    seen.add(text)
    for (const { setting, address: other } of [...others, admin]) {
      if (other === undefined || !overlap(address, other)) continue
      problem(setting, `${formatListenAddress(other)} is also in ${listen.setting.flag} as ${text}`)
    }
  }
  const single = [admin, ...others]
  for (const [index, { setting, address }] of single.entries()) {
    const before = single.slice(0, index).find((other) => sameAddress(other.address, address))
    if (before === undefined || address === undefined) continue
    problem(setting, `${formatListenAddress(address)} is also ${before.setting.flag}`)
  }
}

function sameAddress(a: ListenAddress | undefined, b: ListenAddress | undefined): boolean {
  return a !== undefined && b !== undefined && overlap(a, b)
}

function overlap(a: ListenAddress, b: ListenAddress): boolean {
  return a.port !== 0 && a.port === b.port && (a.host === b.host || isWildcard(a.host) || isWildcard(b.host))
}

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}
