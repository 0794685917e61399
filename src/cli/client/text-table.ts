// A text table: aligned columns, two spaces apart.

/** @param indent before each line */
export function textTable(rows: readonly (readonly string[])[], indent = ''): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length)
  }
  return rows
    .map((row) => `${indent}${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}`.trimEnd())
    .map((line) => `${line}\n`)
    .join('')
}
