// The anchor of a heading, as GitHub makes it: links between pages work in the repository and on the site.

/** `What the gateway's user may do` -> `what-the-gateways-user-may-do` */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')
}
