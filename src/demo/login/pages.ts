// The pages of the demo's provider. Nothing in them is loaded, so they work without a network.

import { escapeHtml } from '../../gateway/core/identity/impersonate.ts'

export const PAGE_HEADERS = {
  'cache-control': 'no-store',
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
} as const

const STYLE = `body { font: 1rem/1.5 system-ui, sans-serif; margin: 4rem auto; max-width: 36rem; padding: 0 1rem }
button { font: inherit; margin: .5rem .5rem .5rem 0; padding: .4rem 1.2rem }`

/** @param path where a choice is sent: PATH/NAME */
export function choicePage(users: ReadonlyMap<string, { readonly text: string }>, path: string): string {
  const forms = [...users].map(([name, { text }]) => {
    return `<form method="post" action="${path}/${name}"><button>${name}</button> ${escapeHtml(text)}</form>`
  })
  return page('Log in', 'Choose who you are. There are no passwords in this demo.', forms.join('\n'))
}

export function codePage(form: string, isWrong: boolean): string {
  const text = isWrong
    ? 'This is not a code that is waiting for a login. Type the one that the terminal shows.'
    : 'Type the code that the terminal shows.'
  return page('Log in for a terminal', text, `${form}\n<button form="op.deviceInputForm">Continue</button>`)
}

export function confirmCodePage(form: string, code: string): string {
  const confirm = '<button form="op.deviceConfirmForm" autofocus>Yes</button>'
  const abort = '<button form="op.deviceConfirmForm" name="abort" value="yes">No</button>'
  return page('Log in for a terminal', `Does your terminal show the code ${code}?`, `${form}\n${confirm}${abort}`)
}

export function logoutPage(form: string): string {
  const yes = '<button form="op.logoutForm" name="logout" value="yes" autofocus>Log out</button>'
  return page('Log out', 'This ends the login of this browser.', `${form}\n${yes}`)
}

/** @param html elements below the text */
export function page(title: string, text: string, html = ''): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${title} - Portcullis demo</title>
<style>${STYLE}</style>
<h1>${title}</h1>
<p>${escapeHtml(text)}</p>
${html}
</html>
`
}
