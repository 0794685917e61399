// A real Chromium, as Debian has it, for the dashboard.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, chromium, type Page } from 'playwright-core'

/** axe-core, to be run inside a page. */
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
}

export interface Opened {
  readonly page: Page
  /** What the browser has complained about: violations of the policy, exceptions, what could not be loaded. */
  readonly complaints: readonly string[]
  close(): Promise<void>
}

export interface PageOptions {
  readonly width?: number
  readonly height?: number
  readonly colorScheme?: 'light' | 'dark'
  readonly ignoreHTTPSErrors?: boolean
}

export async function openPage(browser: Browser, options: PageOptions = {}): Promise<Opened> {
  const { width = 1280, height = 900, colorScheme = 'light', ignoreHTTPSErrors = false } = options
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme,
    ignoreHTTPSErrors,
    reducedMotion: 'reduce',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return { page, complaints, close: () => context.close() }
}

/** WCAG 2.2 AA and best practices. Axe is told to the page by the debugger, which its policy does not bind. */
export async function assertAccessible(page: Page, what: string): Promise<void> {
  await page.evaluate(AXE)
  const found: unknown = await page.evaluate(
    "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 200) + ' ' + failureSummary).join(' | ')))",
  )
  assert.deepEqual(found, [], what)
}

/** Whether something is wider than the window. */
export async function assertFits(page: Page, what: string): Promise<void> {
  const [scroll, client] = await page.evaluate<[number, number]>(
    '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
  )
  assert.ok(scroll <= client, `${what}: ${scroll} wide in a window of ${client}`)
}
