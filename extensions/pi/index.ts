// Stands in for the extension until it is there.
export default function (): void {}
