// `browse.ts CA_FILE URL [USER]`: a browser as a program, for what starts one. On the demo's login page it chooses the user.

import { readFileSync } from 'node:fs'
import process from 'node:process'
import { choose } from './choose-user.ts'
import { TestBrowser } from './test-browser.ts'

const [, , caFile = '', url = '', user] = process.argv
const browser = new TestBrowser(readFileSync(caFile, 'utf8'))
const opened = await browser.open(url)
const { status } = user === undefined ? opened : await choose(browser, opened, user)
process.exitCode = status === 200 ? 0 : 1
