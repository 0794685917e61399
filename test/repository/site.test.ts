// The site has every page, in one group; it is built from the pages as they are, without dead links, and asks no other host for anything.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { createMarkdownRenderer, type MarkdownRenderer } from 'vitepress'
import { pathOutside, rewriteOutsideLinks } from '../../docs/.vitepress/outside-links.ts'
import { decisions, GROUPS, type Group, groupErrors, pagesIn, START, sidebar } from '../../docs/.vitepress/pages.ts'
import { PATIENT } from '../harness/patience.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const DOCS = join(ROOT, 'docs')
const PAGES = [...pagesIn(DOCS), ...decisions(DOCS)]

let folder: string
let built: string

// In a copy: VitePress writes beside its configuration while it builds, and other tests read docs/ meanwhile.
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-site-'))
  cpSync(DOCS, join(folder, 'docs'), { recursive: true })
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  built = join(folder, 'dist-docs')
  const program = join(ROOT, 'node_modules/vitepress/bin/vitepress.js')
  const env = { ...process.env, DOCS_FILES_URL: '' }
  await promisify(execFile)(process.execPath, [program, 'build', 'docs'], { cwd: folder, env })
}, PATIENT)

after(() => rmSync(folder, { recursive: true }))

function html(page: string): string {
  return readFileSync(join(built, `${page}.html`), 'utf8')
}

test('every page is in one group of docs/.vitepress/pages.ts, and every entry is a page', () => {
  assert.deepEqual(groupErrors(GROUPS, pagesIn(DOCS)), [])
})

test('a page in no group, a page in two, and an entry without a page are named', () => {
  const groups: Group[] = [
    { title: 'A', pages: ['one', 'gone'] },
    { title: 'B', pages: ['one', 'two', START] },
  ]
  const file = (page: string): string => `docs/${page}.md`
  assert.deepEqual(groupErrors(groups, [START, 'one', 'two', 'new']), [
    `"A" lists gone, but there is no ${file('gone')}`,
    `${file(START)} is the start page and belongs in no group`,
    `${file('one')} is in 2 groups: A, B`,
    `${file('new')} is in no group`,
  ])
})

test('the start page leads to each group', () => {
  const text = readFileSync(join(DOCS, `${START}.md`), 'utf8')
  for (const { title, pages } of GROUPS) assert.ok(text.includes(`| [${title}](${pages[0]}.md) |`), title)
})

test('decisions are in the sidebar by number', () => {
  const items = sidebar(DOCS).find(({ text }) => text === 'Decisions')?.items ?? []
  const numbers = items.map(({ text }) => Number.parseInt(text, 10))
  assert.ok(numbers.length > 60, `${numbers.length} decisions`)
  assert.deepEqual(
    numbers,
    [...numbers].sort((a, b) => a - b),
  )
})

test('every page has a file, and a place in the sidebar', () => {
  const start = html(START)
  for (const page of PAGES) {
    assert.ok(html(page).includes('<h1 '), page)
    if (page !== START) assert.ok(start.includes(`href="/${page}.html"`), `the sidebar has no ${page}`)
  }
})

test('the index of the search has every page', () => {
  const chunks = join(built, 'assets/chunks')
  const [name] = readdirSync(chunks).filter((file) => file.startsWith('@localSearchIndex'))
  assert.ok(name !== undefined, 'there is no index')
  const index = readFileSync(join(chunks, name), 'utf8')
  for (const page of PAGES) assert.ok(index.includes(`"/${page === START ? '#' : `${page}.html`}`), page)
})

test('links between pages lead to an anchor that is there', () => {
  const ids = new Map(
    PAGES.map((page) => [page, new Set([...html(page).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
  )
  const broken: string[] = []
  let count = 0
  for (const page of PAGES) {
    for (const href of hrefs(page)) {
      const [path = '', anchor = ''] = href.split('#')
      const target = path === '' ? page : join(path.startsWith('/') ? '.' : dirname(page), path).replace(/\.html$/, '')
      const name = path === '/' ? START : target.replace(/^\//, '')
      if (/^[a-z]+:/.test(href) || /^\/(assets\/|vp-icons)/.test(href)) continue
      count += 1
      if (ids.get(name) === undefined || (anchor !== '' && !ids.get(name)?.has(anchor))) broken.push(`${page}: ${href}`)
    }
  }
  assert.ok(count > 1000, `${count} links`)
  assert.deepEqual(broken, [])
})

function hrefs(page: string): string[] {
  return [...html(page).matchAll(/ href="([^"]+)"/g)].map(([, href = '']) => href)
}

test('no page asks another host for anything', () => {
  const elsewhere = /^(?:[a-z]+:)?\/\//
  for (const page of [...PAGES, '404']) {
    const loaded = [...html(page).matchAll(/<(?!a\b)[a-z]+\b[^>]*? (?:src|href|srcset|action|data)="([^"]*)"/g)]
    const urls = loaded.map(([, url = '']) => url)
    assert.ok(urls.length > 3, page)
    assert.deepEqual(
      urls.filter((url) => elsewhere.test(url)),
      [],
      page,
    )
    for (const url of urls) assert.ok(existsSync(join(built, url)), `${page}: ${url}`)
  }
  const styles = readdirSync(built, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.css'))
  assert.ok(styles.length > 0)
  for (const name of styles) {
    const text = readFileSync(join(built, name), 'utf8')
    const urls = [...text.matchAll(/(?:url\(|@import )["']?([^"')]+)/g)].map(([, url = '']) => url)
    assert.deepEqual(
      urls.filter((url) => elsewhere.test(url)),
      [],
      name,
    )
  }
})

test('a link out of docs/ is found from where its page is', () => {
  for (const [href, page, expected] of [
    ['../src/main.ts', 'tap.md', ['src/main.ts', '']],
    ['../bench/README.md#method', 'tap.md', ['bench/README.md', '#method']],
    ['../../src/http2/', 'decisions/0007-x.md', ['src/http2/', '']],
    ['../tap.md', 'decisions/0007-x.md', undefined],
    ['top.md#a', 'tap.md', undefined],
    ['#a', 'tap.md', undefined],
    ['https://example.com/../x', 'tap.md', undefined],
  ] as const) {
    assert.deepEqual(pathOutside(href, page), expected, href)
  }
})

test('a link out of docs/ is text: the path, behind the words of the link where they say something else', () => {
  for (const [page, expected] of [
    ['life-of-a-request', 'in the order of <code>src/gateway/request/serve.ts</code>: read both'],
    ['install', 'the benchmarks (<code>bench/README.md</code>) at'],
    ['limitations', '(measured: <code>bench/README.md</code>)'],
  ] as const) {
    assert.ok(html(page).includes(expected), `${page}: ${expected}`)
  }
})

test('a link out of docs/ leads to the repository where its address is known', async () => {
  const config = (md: MarkdownRenderer): void => rewriteOutsideLinks(md, 'https://git.example.com/blob/main/')
  const md = await createMarkdownRenderer(DOCS, { config })
  const source = '[src/main.ts](../src/main.ts), [the *numbers*](../bench/README.md#method), [top](top.md)'
  const rendered = md.render(source, { path: '', relativePath: 'tap.md', cleanUrls: false })
  const links = [...rendered.matchAll(/<a href="([^"]+)"[^>]*>(.*?)<\/a>/g)].map(([, href, text]) => [href, text])
  assert.deepEqual(links, [
    ['https://git.example.com/blob/main/src/main.ts', 'src/main.ts'],
    ['https://git.example.com/blob/main/bench/README.md#method', 'the <em>numbers</em>'],
    ['./top.html', 'top'],
  ])
})
