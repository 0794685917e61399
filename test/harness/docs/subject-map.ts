// The map of subjects: the table of docs/subjects.md, and docs/subjects.svg, which is drawn from the table.

import type { SourceFile } from './source-files.ts'

export interface SubjectRow {
  readonly name: string
  readonly files: number
  readonly lines: number
  /** By the name of the subject that is imported. */
  readonly imports: ReadonlyMap<string, Edge>
}

/** How many pairs of files there are in which the first imports the second. */
export interface Edge {
  /** Where something of it is used when the program runs. */
  readonly values: number
  readonly types: number
}

const NO_EDGE: Edge = { values: 0, types: 0 }
const BEGIN = '<!-- table of subjects -->\n'
const END = '<!-- end -->\n'

/** @param subjects in their order */
export function measure(files: ReadonlyMap<string, SourceFile>, subjects: readonly string[]): SubjectRow[] {
  return subjects.map((name) => {
    const own = [...files.values()].filter(({ subject }) => subject === name)
    const imports = new Map<string, Edge>()
    for (const { path, isTypeOnly } of own.flatMap((file) => file.imports)) {
      const target = files.get(path)?.subject ?? name
      if (target === name) continue
      const { values, types } = imports.get(target) ?? NO_EDGE
      imports.set(target, isTypeOnly ? { values, types: types + 1 } : { values: values + 1, types })
    }
    return { name, files: own.length, lines: own.reduce((sum, { lines }) => sum + lines, 0), imports }
  })
}

/** The page with the table of these rows. */
export function withTable(page: string, rows: readonly SubjectRow[]): string {
  const lines = rows.map(({ name, files, lines, imports }, at) => {
    const cell = (targets: readonly SubjectRow[]): string =>
      targets
        .flatMap((target) => {
          const edge = imports.get(target.name)
          return edge === undefined ? [] : [`${target.name} ${edge.values} + ${edge.types}`]
        })
        .join(', ')
    return `| ${name} | ${files} | ${lines} | ${cell(rows.slice(0, at))} | ${cell(rows.slice(at))} |\n`
  })
  const head =
    '| subject | files | lines | imports of subjects before it | of subjects after it |\n|---|---|---|---|---|\n'
  const [before, , after] = split(page)
  return `${before}${BEGIN}\n${head}${lines.join('')}\n${END}${after}`
}

/** What the table of the page says. */
export function rowsOf(page: string): SubjectRow[] {
  const [, table] = split(page)
  return [...table.matchAll(/^\| ([a-z][\w-]*) \| (\d+) \| (\d+) \| (.*) \| (.*) \|$/gm)].map(
    ([, name = '', files, lines, earlier = '', later = '']) => ({
      name,
      files: Number(files),
      lines: Number(lines),
      imports: new Map(
        [...`${earlier}, ${later}`.matchAll(/([a-z][\w-]*) (\d+) \+ (\d+)/g)].map(([, target = '', values, types]) => [
          target,
          { values: Number(values), types: Number(types) },
        ]),
      ),
    }),
  )
}

function split(page: string): readonly [before: string, table: string, after: string] {
  const [start, end] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (start < 0 || end < start) throw new Error(`the page needs the lines ${BEGIN.trim()} and ${END.trim()}`)
  return [page.slice(0, start), page.slice(start + BEGIN.length, end), page.slice(end + END.length)]
}

const CELL = { width: 52, height: 34 }
/** Where the cells begin: to the left of them stand names and sizes, above them names. */
const LEFT = 300
const TOP = 118
const BAR = { left: 128, width: 90 }
const MARGIN = 12
const LEGEND = 56

/** A row for each subject and a column for each: what the row imports of the column. */
export function draw(rows: readonly SubjectRow[]): string {
  const right = LEFT + rows.length * CELL.width
  const bottom = TOP + rows.length * CELL.height
  const [width, height] = [right + 44, bottom + LEGEND]
  const most = Math.max(...rows.map(({ lines }) => lines))
  const shapes = rows.flatMap((row, at) => [
    ...sizeOf(row, at, most),
    text(`translate(${LEFT + (at + 0.5) * CELL.width} ${TOP - 8}) rotate(-40)`, row.name, 'class="name"'),
    ...rows.flatMap((column, to) => cell(row, column, at, to)),
  ])
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>The subjects of src/, their sizes, and which imports which</title>
<style>
text { font: 12px sans-serif; fill: #1f2328 }
.name { font-weight: 600 }
.small { font-size: 10px; fill: #59636e }
.end { text-anchor: end }
.middle { text-anchor: middle }
</style>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${shapes.join('\n')}
${text(`translate(${MARGIN} ${bottom + 22})`, 'A row imports a column: pairs of files, and below them the pairs that share types only.', '')}
${text(`translate(${MARGIN} ${bottom + 42})`, 'Blue: a subject before it. Red: a subject after it, which the order does not allow.', '')}
</svg>
`
}

function sizeOf({ name, files, lines }: SubjectRow, at: number, most: number): string[] {
  const top = TOP + at * CELL.height
  const base = top + 21
  const bar = Math.max(1, Math.round((lines / most) * BAR.width))
  return [
    text(`translate(${MARGIN} ${base})`, name, 'class="name"'),
    `<rect x="${BAR.left}" y="${top + 9}" width="${bar}" height="16" fill="#8c959f"/>`,
    text(`translate(${LEFT - 10} ${top + 16})`, `${lines} lines`, 'class="small end"'),
    text(`translate(${LEFT - 10} ${top + 28})`, `${files} files`, 'class="small end"'),
  ]
}

function cell(row: SubjectRow, column: SubjectRow, at: number, to: number): string[] {
  const [x, y] = [LEFT + to * CELL.width, TOP + at * CELL.height]
  const edge = row.imports.get(column.name)
  const box = (fill: string): string =>
    `<rect x="${x}" y="${y}" width="${CELL.width}" height="${CELL.height}" fill="${fill}" stroke="#d1d9e0"/>`
  if (edge === undefined) return [box(at === to ? '#d1d9e0' : '#ffffff')]
  const { values, types } = edge
  const middle = x + CELL.width / 2
  return [
    box(shade(values + types, to > at)),
    text(`translate(${middle} ${y + (types === 0 ? 21 : 16)})`, values === 0 ? '–' : `${values}`, 'class="middle"'),
    ...(types === 0
      ? []
      : [text(`translate(${middle} ${y + 28})`, `${types} ${types === 1 ? 'type' : 'types'}`, 'class="small middle"')]),
  ]
}

/** Darker for more, by orders of magnitude. */
function shade(count: number, leadsBack: boolean): string {
  const step = Math.min(3, Math.floor(Math.log10(count) * 1.5))
  const shades = leadsBack ? ['#ffcecb', '#ffaba8', '#ff8182', '#fa4549'] : ['#ddf4ff', '#b6e3ff', '#80ccff', '#54aeff']
  return shades[step] ?? ''
}

function text(transform: string, content: string, attributes: string): string {
  return `<text transform="${transform}"${attributes === '' ? '' : ` ${attributes}`}>${content}</text>`
}
