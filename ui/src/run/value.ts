interface ValuePage {
  text: string
  nextOffset: bigint
}

/** join reads all pages of a value. */
export async function join(page: (offset: bigint) => Promise<ValuePage>): Promise<string> {
  const texts: string[] = []
  let offset = 0n
  do {
    const read = await page(offset)
    texts.push(read.text)
    offset = read.nextOffset
  } while (offset !== 0n)
  return texts.join('')
}
