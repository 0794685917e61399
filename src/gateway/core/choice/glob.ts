// Globs of names: * is any number of characters, ? is one. Everything else is itself.

export function isGlob(text: string): boolean {
  return /[*?]/.test(text)
}

/** Goes back only to the last star, so it takes at most the product of both lengths. */
export function globMatches(glob: string, name: string): boolean {
  let at = 0
  let star = -1
  let resumed = 0
  let i = 0
  while (i < name.length) {
    if (glob[at] === '*') {
      star = at++
      resumed = i
    } else if (glob[at] === '?' || glob[at] === name[i]) {
      at++
      i++
    } else if (star >= 0) {
      at = star + 1
      i = ++resumed
    } else return false
  }
  while (glob[at] === '*') at++
  return at === glob.length
}
