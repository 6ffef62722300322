// The entry of Switchboard, for hosts that `switchboard install` does not know yet.

export const gateway = ({ host }, more = {}) => ({ command: "switchboard", args: ["serve", "--host", host.name], ...more });
