// The tables of a decoder (RFC 7541 sections 2.3 and 4): each entry with its size and its flags from the field rules, so that
// they are checked only once.

import { KNOWN_FLAGS } from './field-rules.ts'
import { STATIC_NAMES, STATIC_NUMBERS, STATIC_VALUES } from './static.ts'

/** Overhead of an entry (RFC 7541 section 4.1, RFC 9113 section 6.5.2). */
export const ENTRY_OVERHEAD = 32
/** Size of the table until the peer knows our SETTINGS (RFC 9113 section 6.5.2). */
export const INITIAL_TABLE_BYTES = 4096

/** Flags of the static table's entries, by index. */
export const STATIC_FLAGS: Uint16Array = Uint16Array.from(STATIC_NUMBERS, (number) => KNOWN_FLAGS[number] ?? 0)
export const STATIC_SIZES: Uint16Array = Uint16Array.from(
  STATIC_NAMES,
  (name, index) => name.length + (STATIC_VALUES[index] ?? '').length + ENTRY_OVERHEAD,
)

/** A power of two; twice as many when all are taken. Most connections have few fields that recur. */
const FIRST_SLOTS = 16

/** The dynamic table: a ring. */
export class DecoderTable {
  /** By slot. Others after `insert`. */
  names: string[] = new Array<string>(FIRST_SLOTS).fill('')
  values: string[] = new Array<string>(FIRST_SLOTS).fill('')
  sizes: Int32Array = new Int32Array(FIRST_SLOTS)
  flags: Uint16Array = new Uint16Array(FIRST_SLOTS)
  #mask = FIRST_SLOTS - 1
  /** The newest entry is in slot #newest, `#count` entries are alive. */
  #newest = 0
  #count = 0
  #bytes = 0
  #maxBytes = INITIAL_TABLE_BYTES

  /** Whether an entry of this age exists: 0 is the newest. */
  has(age: number): boolean {
    return age < this.#count
  }

  /** Its slot. */
  slotOf(age: number): number {
    return (this.#newest - age) & this.#mask
  }

  /** Adds a field as the newest entry. One that is too large empties the table (RFC 7541 section 4.4). */
  insert(name: string, value: string, size: number, flags: number): void {
    if (size > this.#maxBytes) {
      this.#evict(0)
      return
    }
    this.#evict(this.#maxBytes - size)
    if (this.#count > this.#mask) this.#grow()
    const slot = (this.#newest + 1) & this.#mask
    this.#newest = slot
    this.names[slot] = name
    this.values[slot] = value
    this.sizes[slot] = size
    this.flags[slot] = flags
    this.#bytes += size
    this.#count++
  }

  /** Twice as many slots; no more than the octets of the table allow, as each entry counts 32 at least. */
  #grow(): void {
    const { names, values, sizes, flags } = this
    const slots = 2 * (this.#mask + 1)
    this.names = new Array<string>(slots).fill('')
    this.values = new Array<string>(slots).fill('')
    this.sizes = new Int32Array(slots)
    this.flags = new Uint16Array(slots)
    // The oldest one goes into slot 1.
    for (let to = 1, age = this.#count - 1; age >= 0; to++, age--) {
      const from = this.slotOf(age)
      this.names[to] = names[from] as string
      this.values[to] = values[from] as string
      this.sizes[to] = sizes[from] as number
      this.flags[to] = flags[from] as number
    }
    this.#newest = this.#count
    this.#mask = slots - 1
  }

  /** A size update of the peer (RFC 7541 section 6.3). */
  resize(bytes: number): void {
    this.#maxBytes = bytes
    this.#evict(bytes)
  }

  /** Drops the oldest entries until at most `bytes` are left, and their strings with them. */
  #evict(bytes: number): void {
    while (this.#bytes > bytes) {
      const slot = (this.#newest - --this.#count) & this.#mask
      this.#bytes -= this.sizes[slot] as number
      this.names[slot] = ''
      this.values[slot] = ''
    }
  }
}
