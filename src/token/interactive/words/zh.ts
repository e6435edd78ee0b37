import { zh as refusals } from "../../refusals/zh.js";
import type { Words } from "./en.js";

export const zh: Words = {
  locale: "zh",
  roles: { owner: "所有者", member: "成员" },
  operatorView: "运维视图",

  signIn: {
    title: "登录",
    goingOnTo: "登录后前往",
    name: "用户名",
    password: "密码",
    action: "登录",
    wrong: "用户名或密码错误。",
  },

  consent: {
    title: "允许访问",
    asked: "一个应用请求以您的名义、用您的权限使用管理接口（platform-api），为期一小时。",
    may: {
      owner: "该应用随后可以做您作为所有者可以做的一切：查看会话和档案，删除声纹，管理应用、用户和密钥。",
      member: "该应用随后可以查看和更改您的凭据。",
    },
    application: "应用",
    user: "您的名称",
    target: "随后前往",
    allow: "允许",
    deny: "拒绝",
  },

  profile: {
    title: "个人资料",
    signedInAs: "已登录：",
    operatorView: "运维视图",
    signOut: "退出",
    credentials: "您的凭据",
    credentialsNote: "供以您的名义使用管理接口的程序使用。",
    none: "还没有。",
    kinds: { service: "服务账户", user: "用户账户" },
    delete: "删除",
    deleteOf: (label) => `删除 ${label}`,
    deleteNote: "使用它的程序将无法再获取令牌。此操作无法撤销。",
    deleteYes: "永久删除",
    newCredential: "新建凭据",
    label: "标签",
    use: "用途",
    service: "服务账户（客户端凭据）",
    user: "用户账户（授权码）",
    redirectUris: "回调地址，每行一个（用户账户）",
    create: "创建",
    secretOnce: "请立即保存此密钥：不会再次显示。",
    clientId: "客户端 ID",
    clientSecret: "客户端密钥",
  },

  password: {
    heading: "更改密码",
    note: "至少 10 个字符。其他浏览器将退出登录，以您的名义颁发的令牌将失效。",
    current: "当前密码",
    chosen: "新密码",
    repeated: "再次输入新密码",
    action: "更改密码",
    changed: "您的密码已更改。其他浏览器已退出登录，以您的名义颁发的令牌已失效。",
  },

  error: {
    title: "未能完成",
    again: "重新打开表单",
    failed: "服务器发生故障。",
    refused: "无法答复此请求。请告知您所来自的应用的运营者：",
  },

  refusals,
};
