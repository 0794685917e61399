// An index from a key to a set of names.

const NONE: ReadonlySet<string> = new Set()

export class NamesByKey {
  readonly #names = new Map<string, Set<string>>()

  get(key: string): ReadonlySet<string> {
    return this.#names.get(key) ?? NONE
  }

  add(key: string, name: string): void {
    const known = this.#names.get(key)
    if (known === undefined) this.#names.set(key, new Set([name]))
    else known.add(name)
  }

  remove(key: string, name: string): void {
    const known = this.#names.get(key)
    known?.delete(name)
    if (known?.size === 0) this.#names.delete(key)
  }
}
