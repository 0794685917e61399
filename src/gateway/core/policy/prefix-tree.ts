// Which prefixes a text begins with: a radix tree, so that the cost is that of reading the text once, however many prefixes there are.

interface Node<T> {
  /** What the edge to this node adds to the prefix; '' for the root. */
  label: string
  /** Undefined: no prefix ends here. */
  value: T | undefined
  /** By the code unit their label begins with. */
  children: Map<number, Node<T>> | undefined
}

export class PrefixTree<T> {
  readonly #root: Node<T> = { label: '', value: undefined, children: undefined }

  /** @param prefix not empty; a second value replaces the first */
  set(prefix: string, value: T): void {
    let node = this.#root
    let at = 0
    while (at < prefix.length) {
      node.children ??= new Map()
      const { children } = node
      const child: Node<T> | undefined = children.get(prefix.charCodeAt(at))
      if (child === undefined) {
        const leaf = { label: prefix.slice(at), value, children: undefined }
        children.set(prefix.charCodeAt(at), leaf)
        return
      }
      const shared = sharedLength(child.label, prefix, at)
      node = shared < child.label.length ? split(children, child, shared) : child
      at += shared
    }
    node.value = value
  }

  /**
   * Puts the values of all prefixes that `text` begins with into `into`, from index `count` on. Arrays are not made shorter here or by
   * callers that look up often: V8 drops the memory of an array whose length becomes 0.
   * @returns the index after the last one
   */
  collect(text: string, into: T[], count: number): number {
    let found = count
    let { children } = this.#root
    let at = 0
    while (children !== undefined && at < text.length) {
      const node: Node<T> | undefined = children.get(text.charCodeAt(at))
      if (node === undefined || sharedLength(node.label, text, at) < node.label.length) break
      if (node.value !== undefined) into[found++] = node.value
      at += node.label.length
      children = node.children
    }
    return found
  }
}

/** How many code units of `label` stand in `text` from `at` on. */
function sharedLength(label: string, text: string, at: number): number {
  let length = 0
  while (length < label.length && label.charCodeAt(length) === text.charCodeAt(at + length)) length++
  return length
}

/** Puts a node in front of `child` that has the first `length` code units of its label. */
function split<T>(children: Map<number, Node<T>>, child: Node<T>, length: number): Node<T> {
  const front: Node<T> = { label: child.label.slice(0, length), value: undefined, children: new Map() }
  children.set(child.label.charCodeAt(0), front)
  child.label = child.label.slice(length)
  front.children?.set(child.label.charCodeAt(0), child)
  return front
}
