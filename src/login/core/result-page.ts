// What the browser shows when it has brought the code: how the login went. Without scripts; nothing in it is loaded.

export function resultPage(succeeded: boolean, text: string): string {
  const title = succeeded ? 'Logged in' : 'Not logged in'
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${title} - Portcullis</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; margin: 4rem auto; max-width: 36rem; padding: 0 1rem }</style>
<h1>${title}</h1>
<p>${escaped(text)}</p>
</html>
`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}
