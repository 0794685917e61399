// A browser as far as a login needs one: it keeps cookies, follows redirects, and sends forms.

import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

export interface Page {
  readonly url: string
  readonly status: number
  readonly text: string
}

interface PageAnswer extends Page {
  readonly location: string
}

const MAX_HOPS = 12

export class TestBrowser {
  readonly #ca: string
  readonly #cookies = new Map<string, string>()

  /** @param ca PEM */
  constructor(ca: string) {
    this.#ca = ca
  }

  /** The page at which the redirects end. @param until does not open a URL that begins so, but returns it */
  async open(url: string, form?: Readonly<Record<string, string>>, until?: string): Promise<Page> {
    let page = await this.#call(url, form)
    for (let hops = 0; hops < MAX_HOPS && page.location !== ''; hops++) {
      const next = new URL(page.location, page.url).href
      if (until !== undefined && next.startsWith(until)) return { url: next, status: 0, text: '' }
      page = await this.#call(next)
    }
    return page
  }

  /** Sends the form of a page with its hidden fields and these. */
  async submit({ url, text }: Page, fields: Readonly<Record<string, string>>, until?: string): Promise<Page> {
    const [, action = ''] = /<form[^>]*action="([^"]*)"/.exec(text) ?? []
    const hidden: Record<string, string> = {}
    for (const [input] of text.matchAll(/<input[^>]*type="hidden"[^>]*>/g)) {
      const [, name = ''] = /name="([^"]*)"/.exec(input) ?? []
      const [, value = ''] = /value="([^"]*)"/.exec(input) ?? []
      hidden[name] = value
    }
    return await this.open(new URL(action, url).href, { ...hidden, ...fields }, until)
  }

  #call(url: string, form?: Readonly<Record<string, string>>): Promise<PageAnswer> {
    const headers: Record<string, string> = {
      cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      ...(form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
    }
    const options = { headers, agent: false, method: form === undefined ? 'GET' : 'POST' }
    return new Promise((resolve, reject) => {
      const sent = url.startsWith('http:') ? requestHttp(url, options) : requestHttps(url, { ...options, ca: this.#ca })
      sent.once('response', (answer) => {
        for (const line of answer.headers['set-cookie'] ?? []) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
          this.#cookies.set(name, value)
        }
        let text = ''
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk
        })
        answer.once('end', () =>
          resolve({ url, status: answer.statusCode ?? 0, location: answer.headers.location ?? '', text }),
        )
      })
      sent.once('error', reject)
      sent.end(form === undefined ? '' : String(new URLSearchParams(form)))
    })
  }
}
