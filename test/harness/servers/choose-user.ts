// What a user does at the demo's provider: the code of a terminal is confirmed, and a user chosen.

import type { Page, TestBrowser } from './test-browser.ts'

/** The page behind the choice. A page that offers none is the last one already, as of a browser that is logged in. */
export async function choose(browser: TestBrowser, page: Page, user: string): Promise<Page> {
  const { url, text } = page
  const [, action] = new RegExp(`action="([^"]*/${user})"`).exec(text) ?? []
  return action === undefined ? page : await browser.open(new URL(action, url).href, {})
}

/** The page at the end of a login in a terminal that shows this address, with its code. */
export async function confirmCode(browser: TestBrowser, url: string, user: string): Promise<Page> {
  // A browser sends the first page by itself.
  const confirm = await browser.submit(await browser.open(url), {})
  return await choose(browser, await browser.submit(confirm, {}), user)
}
