// A text table: aligned columns, two spaces apart.

import { textWidth } from './printable.ts'

/** @param indent before each line */
export function textTable(rows: readonly (readonly string[])[], indent = ''): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, textWidth(cell))
  }
  const lines = rows.map((row) => {
    const cells = row.map((cell, at) => cell + ' '.repeat((widths[at] ?? 0) - textWidth(cell)))
    return `${indent}${cells.join('  ')}`.trimEnd()
  })
  return lines.map((line) => `${line}\n`).join('')
}
