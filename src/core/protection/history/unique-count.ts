// How many different names were seen, in a constant 4 KiB: HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007)
// with linear counting for few. The standard error is 1.04 / sqrt(4096) = 1.6 %.

import { NameHash } from '../../text/name-hash.ts'

const INDEX_BITS = 12
const REGISTERS = 1 << INDEX_BITS
/** alpha_m of the paper, of so many registers. */
const ALPHA = 0.7213 / (1 + 1.079 / REGISTERS)
/** The same in all processes, so that the same names give the same number. */
const SEED = [0x706f6473, 0x65696421] as const

export class UniqueCount {
  readonly #registers = new Uint8Array(REGISTERS)
  readonly #hash = new NameHash(SEED)

  add(text: string): void {
    this.#hash.hash(text)
    const { low, high } = this.#hash
    const index = low >>> (32 - INDEX_BITS)
    // Leading zeros of the other word, and one: 1 to 33.
    const rank = Math.clz32(high) + 1
    if (rank > (this.#registers[index] ?? 0)) this.#registers[index] = rank
  }

  count(): number {
    let sum = 0
    let empty = 0
    for (const register of this.#registers) {
      sum += 2 ** -register
      if (register === 0) empty++
    }
    const estimate = (ALPHA * REGISTERS * REGISTERS) / sum
    if (estimate <= 2.5 * REGISTERS && empty > 0) return Math.round(REGISTERS * Math.log(REGISTERS / empty))
    return Math.round(estimate)
  }

  reset(): void {
    this.#registers.fill(0)
  }
}
