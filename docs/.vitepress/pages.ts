// The pages of the site, in the order of its sidebar. A new page under docs/ is one line here; decisions are found by themselves.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Group {
  readonly title: string
  /** File names under docs/, without `.md`; the first is where the start page leads. */
  readonly pages: readonly [string, ...string[]]
}

/** The start page, which is in no group. */
export const START = 'index'

export const GROUPS: readonly Group[] = [
  {
    title: 'First steps',
    pages: ['install', 'importing', 'clients', 'company-login', 'login', 'vip', 'coming-from-kubegateway'],
  },
  {
    title: 'Daily work',
    pages: ['dashboard', 'top', 'tap', 'status', 'revoking', 'access', 'list-guard', 'cache', 'federation', 'replay'],
  },
  {
    title: 'Incidents',
    pages: [
      'incidents',
      'first-incident',
      'degrade',
      'freeze-verify-lift',
      'runbooks',
      'refusals',
      'troubleshooting',
      'last-good-state',
    ],
  },
  { title: 'Pod protection and scaling', pages: ['protection', 'scale'] },
  {
    title: 'Operating',
    pages: [
      'operating',
      ...['object-sources', 'embedded-api-server', 'store', 'crds', 'secrets-and-credentials', 'certificates'],
      ...['health', 'admin-listener', 'metrics', 'logs', 'sessions', 'traces'],
      ...['connections', 'shares', 'shared-limits', 'memory', 'drain', 'hot-reload', 'upgrading', 'security'],
    ],
  },
  { title: 'Reference', pages: ['upstream-cluster', 'settings', 'commands', 'limits', 'limitations'] },
  { title: 'Inside', pages: ['architecture', 'subjects', 'life-of-a-request', 'state-machines', 'walks', 'glossary'] },
]

/** As VitePress takes it. */
export interface SidebarItem {
  text: string
  link?: string
  collapsed?: boolean
  items?: SidebarItem[]
}

/** @param docs the folder docs/ */
export function sidebar(docs: string): SidebarItem[] {
  const item = (page: string): SidebarItem => ({ text: titleOf(join(docs, `${page}.md`)), link: `/${page}` })
  return [
    ...GROUPS.map(({ title, pages }) => ({ text: title, items: pages.map(item) })),
    { text: 'Decisions', collapsed: true, items: decisions(docs).map(item) },
  ]
}

/** By number, which has four digits. */
export function decisions(docs: string): string[] {
  return pagesIn(join(docs, 'decisions')).map((name) => `decisions/${name}`)
}

/** What is wrong with the groups, a line for each; `pages` is what is in the folder. */
export function groupErrors(groups: readonly Group[], pages: readonly string[]): string[] {
  const groupsOf = new Map<string, string[]>(pages.map((page) => [page, []]))
  const errors: string[] = []
  for (const { title, pages: listed } of groups) {
    for (const page of listed) {
      const found = groupsOf.get(page)
      if (found === undefined) errors.push(`"${title}" lists ${page}, but there is no docs/${page}.md`)
      found?.push(title)
    }
  }
  for (const [page, titles] of groupsOf) {
    if (page === START && titles.length === 0) continue
    if (titles.length === 0) errors.push(`docs/${page}.md is in no group`)
    if (titles.length > 1) errors.push(`docs/${page}.md is in ${titles.length} groups: ${titles.join(', ')}`)
    if (page === START) errors.push(`docs/${page}.md is the start page and belongs in no group`)
  }
  return errors
}

export function pagesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .map((name) => name.slice(0, -'.md'.length))
    .sort()
}

/** The first heading, without Markdown's signs. */
function titleOf(file: string): string {
  const title = /^# (.+)$/m.exec(readFileSync(file, 'utf8'))?.[1]
  if (title === undefined) throw new Error(`${file} has no heading "# ..."`)
  return title.replaceAll('`', '')
}
